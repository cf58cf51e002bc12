//! A CPU of its own for one thread: everything else that can be moved is moved away, and comes back.
//!
//! What keeps the rest away is whatever the machine has, tried in this order: an isolated partition of cgroup v2
//! (`cpuset.cpus.partition`), a cpuset of cgroup v1, or the affinity mask of every thread. Interrupts and the kernel's
//! unbound workers are moved by their own masks in each case. What the kernel has bound to the CPU - its timer, its
//! `ksoftirqd`, its `migration` thread - stays, and the report says so. All of it is written to a
//! [`Journal`] first.
//!
//! | module | what it moves |
//! |---|---|
//! | `partition` | everything, by cgroup v2 |
//! | `cpuset` | everything, by cgroup v1 |
//! | `masks` | threads, by their affinity masks |
//! | `interrupts` | interrupts, and the kernel's unbound workers |

mod cpuset;
mod interrupts;
mod masks;
mod mounts;
mod partition;

use std::fmt;
use std::io;

use thiserror::Error;

use crate::cpus::Cpus;
use crate::journal::{self, Change, Failure, Journal};
use crate::task;

/// A CPU that belongs to the thread that raised this, until it is dropped.
#[derive(Debug)]
pub struct Shield {
    journal: Journal,
    report: ShieldReport,
}

/// What was done for a shield, and what could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShieldReport {
    /// The CPU.
    pub cpu: usize,
    /// What keeps threads away from it.
    pub method: Method,
    /// Threads that could run there before and cannot now.
    pub threads: usize,
    /// Interrupts that could arrive there before and cannot now.
    pub interrupts: usize,
    /// What still runs there.
    pub left: Vec<Left>,
}

/// What keeps threads away from a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// An isolated partition of cgroup v2.
    Partition,
    /// A cpuset of cgroup v1.
    Cpuset,
    /// The affinity mask of every thread.
    Masks,
}

/// Something that still runs on a shielded CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Threads by name, interrupts by number.
    pub what: Vec<String>,
    /// Why it stays.
    pub why: String,
}

/// Why a CPU could not be shielded.
#[derive(Debug, Error)]
pub enum ShieldError {
    /// There is nowhere to move anything to.
    #[error("the machine has one CPU only: there is none to move the rest to")]
    OneCpu,
    /// No such CPU.
    #[error("there is no CPU {cpu} online: found {online}")]
    NoSuchCpu {
        /// Asked for.
        cpu: usize,
        /// Those there are.
        online: String,
    },
    /// Another process has it.
    #[error("CPU {cpu} is shielded by process {pid} already: choose another CPU or end that one")]
    Taken {
        /// Asked for.
        cpu: usize,
        /// Whose it is.
        pid: u32,
    },
    /// The journal cannot be written.
    #[error("needs root: what is changed is remembered below /run/onbeat, which cannot be written ({0})")]
    Journal(io::Error),
    /// The calling thread did not get there.
    #[error("the calling thread was not let onto CPU {cpu}: {why}")]
    Placement {
        /// Asked for.
        cpu: usize,
        /// What the system said.
        why: io::Error,
    },
}

impl Shield {
    /// Moves everything else away from `cpu` and the calling thread there. Other threads of this process are moved
    /// away like all others.
    ///
    /// # Errors
    /// The machine has no such CPU or no other one, another process has it, or this one may not (it needs root).
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
        let before = masks::on(cpu);
        let (mut journal, method) = keep_threads_away(cpu, &online)?;
        let interrupts = interrupts::move_away(&mut journal, cpu);
        let after = masks::on(cpu);
        let mut left = masks::left(&after);
        left.extend(interrupts.left);
        let threads = before.iter().filter(|task| !after.iter().any(|it| it.tid == task.tid)).count();
        let report = ShieldReport { cpu, method, threads, interrupts: interrupts.moved, left };
        Ok(Self { journal, report })
    }

    /// What was done.
    #[must_use]
    pub fn report(&self) -> &ShieldReport {
        &self.report
    }

    /// Puts everything back, and returns what could not be.
    #[must_use]
    pub fn lower(self) -> Vec<Failure> {
        self.journal.undo()
    }
}

/// The first of the methods that the machine grants. What a refused one has changed is undone.
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
        // First, so that it is put back last: in a control group of one CPU a thread has no other to go back to.
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
