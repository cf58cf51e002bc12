//! Shield of a CPU for one thread: everything else that can be moved is moved away, and restored
//! later.
//!
//! Threads are kept away by the first method the machine grants: an isolated partition of cgroup v2
//! (`cpuset.cpus.partition`), a cpuset of cgroup v1, or the affinity mask of every thread.
//! Interrupts and the kernel's unbound workers are moved by their own masks in each case. Threads
//! and interrupts that the kernel has bound to the CPU - its timer, its `ksoftirqd`, its
//! `migration` thread - stay, and are reported. All changes are recorded in a [`Journal`] first.
//!
//! | module | contents |
//! |---|---|
//! | `partition` | shielding with a partition of cgroup v2 |
//! | `cpuset` | shielding with a cpuset of cgroup v1 |
//! | `masks` | shielding with affinity masks |
//! | `interrupts` | moving of interrupts, and of the kernel's unbound workers |

mod cpuset;
mod masks;
mod partition;

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use thiserror::Error;

use crate::cpus::Cpus;
use crate::journal::{Change, CpuFormat, Failure, Journal};
use crate::{journal, task};

/// Reservation of a CPU for the thread that raised it, until it is dropped.
#[derive(Debug)]
pub struct Shield {
    journal: Journal,
    report: ShieldReport,
}

/// Result of raising a shield.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShieldReport {
    /// CPU shielded.
    pub cpu: usize,
    /// Method that keeps threads away.
    pub method: Method,
    /// Number of threads that could run there before and cannot now.
    pub threads: usize,
    /// Number of interrupts that could arrive there before and cannot now.
    pub interrupts: usize,
    /// Threads and interrupts that stay.
    pub left: Vec<Left>,
}

/// Method that keeps threads away from a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Isolated partition of cgroup v2.
    Partition,
    /// Cpuset of cgroup v1.
    Cpuset,
    /// Affinity mask of every thread.
    Masks,
}

/// Group of threads or interrupts that stay on a shielded CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Names of threads, numbers of interrupts.
    pub what: Vec<String>,
    /// Reason why they stay.
    pub why: String,
}

/// Reason for a shield that was not raised.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ShieldError {
    /// There is no other CPU for the other threads.
    #[error("the machine has only one CPU: there is no other CPU for its other tasks")]
    OneCpu,
    /// The CPU does not exist.
    #[error("there is no CPU {cpu} online: found {online}")]
    NoSuchCpu {
        /// CPU requested.
        cpu: usize,
        /// CPUs that are online.
        online: String,
    },
    /// Another process has shielded it.
    #[error("CPU {cpu} is shielded by process {pid} already: choose another CPU or end that one")]
    Taken {
        /// CPU requested.
        cpu: usize,
        /// Id of that process.
        pid: u32,
    },
    /// The journal cannot be written.
    #[error("needs root: what is changed is remembered below /run/onbeat, which cannot be written ({0})")]
    Journal(io::Error),
    /// The calling thread cannot be moved to the CPU.
    #[error("the calling thread was not let onto CPU {cpu}: {why}")]
    Placement {
        /// CPU requested.
        cpu: usize,
        /// Error of the operating system.
        why: io::Error,
    },
}

impl Shield {
    /// Moves everything else away from `cpu` and the calling thread there. Other threads of this
    /// process are moved away like all others. What killed processes left behind is put back first.
    ///
    /// # Errors
    /// The machine has no such CPU or no other one, another process has shielded it, or this one
    /// has not the right (root is required).
    pub fn raise(cpu: usize) -> Result<Self, ShieldError> {
        let online = Cpus::online();
        if !online.contains(cpu) {
            return Err(ShieldError::NoSuchCpu { cpu, online: online.to_string() });
        }
        if online.count() < 2 {
            return Err(ShieldError::OneCpu);
        }
        if let Some(pid) = journal::claimed(cpu) {
            return Err(ShieldError::Taken { cpu, pid });
        }
        // The state left by a killed process is not one to restore later. Commands that restore on
        // request report failures; the shield works despite what they leave.
        let _ = journal::restore_crashed();
        let before = masks::on(cpu);
        let (mut journal, method) = keep_threads_away(cpu, &online)?;
        let interrupts = move_away(&mut journal, cpu);
        let after = masks::on(cpu);
        let mut left = masks::left(&after);
        left.extend(interrupts.left);
        let threads = before.iter().filter(|task| !after.iter().any(|it| it.tid == task.tid)).count();
        let report = ShieldReport { cpu, method, threads, interrupts: interrupts.moved, left };
        Ok(Self { journal, report })
    }

    /// Result of raising it.
    #[must_use]
    pub fn report(&self) -> &ShieldReport {
        &self.report
    }

    /// Restores everything, and returns the changes that could not be undone.
    #[must_use]
    pub fn lower(self) -> Vec<Failure> {
        self.journal.undo()
    }
}

/// Applies the first method that the machine grants. Changes of a refused one are undone.
fn keep_threads_away(cpu: usize, online: &Cpus) -> Result<(Journal, Method), ShieldError> {
    type Raise = fn(&mut Journal, usize, &Cpus) -> io::Result<()>;
    let methods: [(Method, Raise); 3] = [
        (Method::Partition, partition::raise),
        (Method::Cpuset, cpuset::raise),
        (Method::Masks, masks::raise),
    ];
    let mut refused = None;
    for (method, raise) in methods {
        let mut journal = Journal::begin(&format!("shield of CPU {cpu}")).map_err(ShieldError::Journal)?;
        journal.remember(Change::Claim { cpu }).map_err(ShieldError::Journal)?;
        // Recorded first, so that it is undone last: in a control group of one CPU a thread cannot
        // return to others.
        journal
            .set_affinity(task::current(), &Cpus::one(cpu))
            .map_err(|why| ShieldError::Placement { cpu, why })?;
        match raise(&mut journal, cpu, online) {
            Ok(()) => return Ok((journal, method)),
            Err(why) => refused = Some(why),
        }
    }
    let why = refused.unwrap_or_else(|| io::Error::from_raw_os_error(libc::EPERM));
    Err(ShieldError::Placement { cpu, why })
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Partition => "isolated partition (cgroup v2)",
            Self::Cpuset => "cpuset (cgroup v1)",
            Self::Masks => "affinity masks",
        })
    }
}

impl fmt::Display for ShieldReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu, method, threads, interrupts, left } = self;
        let left: usize = left.iter().map(|left| left.what.len()).sum();
        write!(f, "CPU {cpu} by {method}: {threads} threads and {interrupts} interrupts moved, {left} left")
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.why, self.what.join(", "))
    }
}

/// Result of moving interrupts.
struct Moved {
    moved: usize,
    left: Vec<Left>,
}

/// Removes `cpu` from the masks of all interrupts, of interrupts set up later, and of the kernel's
/// unbound workers and watchdog.
fn move_away(journal: &mut Journal, cpu: usize) -> Moved {
    for (path, format) in [
        ("/proc/irq/default_smp_affinity", CpuFormat::Mask),
        ("/sys/devices/virtual/workqueue/cpumask", CpuFormat::Mask),
        ("/proc/sys/kernel/watchdog_cpumask", CpuFormat::List),
    ] {
        // Not every kernel has each of them, and an unbound worker that stays is reported.
        let _ = take(journal, Path::new(path), format, cpu);
    }
    for path in workqueues() {
        let _ = take(journal, &path, CpuFormat::Mask, cpu);
    }
    let mut moved = 0;
    let mut left = Vec::new();
    for number in numbers() {
        let path = PathBuf::from(format!("/proc/irq/{number}/smp_affinity_list"));
        match take(journal, &path, CpuFormat::List, cpu) {
            TakenInterrupt::Moved => moved += 1,
            TakenInterrupt::NotThere => {}
            TakenInterrupt::Refused => left.push(name(number)),
        }
    }
    let why = "interrupts that the kernel does not move".to_owned();
    let left = if left.is_empty() { Vec::new() } else { vec![Left { what: left, why }] };
    Moved { moved, left }
}

enum TakenInterrupt {
    Moved,
    NotThere,
    Refused,
}

fn take(journal: &mut Journal, path: &Path, format: CpuFormat, cpu: usize) -> TakenInterrupt {
    let Ok(now) = format.read(path) else { return TakenInterrupt::NotThere };
    if !now.contains(cpu) {
        return TakenInterrupt::NotThere;
    }
    let fewer = now.without(&Cpus::one(cpu));
    let fewer = if fewer.is_empty() { Cpus::online().without(&Cpus::one(cpu)) } else { fewer };
    match journal.set_cpus(path, format, &fewer) {
        Ok(()) => TakenInterrupt::Moved,
        Err(_) => TakenInterrupt::Refused,
    }
}

/// Workqueues with a mask of their own.
fn workqueues() -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/devices/virtual/workqueue").into_iter().flatten().flatten();
    entries.map(|entry| entry.path().join("cpumask")).filter(|path| path.is_file()).collect()
}

fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc/irq").into_iter().flatten().flatten();
    let mut numbers: Vec<_> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Number and handlers of an interrupt, such as `24 eth0`.
fn name(number: u32) -> String {
    let entries = fs::read_dir(format!("/proc/irq/{number}")).into_iter().flatten().flatten();
    let handlers = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = handlers.filter_map(|entry| entry.file_name().into_string().ok());
    std::iter::once(number.to_string()).chain(names).collect::<Vec<_>>().join(" ")
}
