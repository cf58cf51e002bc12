//! Checks of the machine for causes of late cycles: found, wanted, reason, and fix.
//!
//! Each check is a pure function of the files below a [`Root`] (and, for a network interface, of
//! its driver's settings), so that a test can present any machine. [`Subject`] is the machine
//! examined, [`all`] runs every check, and each gives a [`Finding`]. The changes of a check's fix
//! are data too, a list of [`Change`]s: whatever makes them records the old values first.
//!
//! The checks are those on which the real-time documentation of the kernel, the real-time guides of
//! the distributions, LinuxCNC's notes on latency and the practice of the papers agree. Numbers in
//! `why` are orders of magnitude known in the field, not measurements of this machine. The probe
//! behind `onbeat doctor --for` measures this machine.
//!
//! | module | checks |
//! |---|---|
//! | `change` | changes of a fix, and their execution |
//! | `kernel` | preemption model, debug options, tracing |
//! | `scheduling` | rights, limits, rival threads |
//! | `cpus` | the cycle's CPU and its isolation |
//! | `irqs` | interrupts on that CPU |
//! | `power` | sleep states and frequencies |
//! | `clock` | clocks, timers, watchdogs |
//! | `memory` | work of memory management that delays the cycle |
//! | `virtualisation` | layers below the kernel: hypervisor, firmware |
//! | `nic`, `nic_users` | the interface of the bus, and its other users |
//! | `logging` | logging and consoles while the cycle runs |

mod change;
mod clock;
mod cpus;
mod irqs;
mod kernel;
mod kernel_config;
mod logging;
mod memory;
mod nic;
mod nic_users;
mod power;
mod scheduling;
mod subject;
mod threads;
mod virtualisation;

use std::fmt;

use serde::Serialize;
use types::cause::Kind;

pub use change::Change;
pub use subject::Subject;

use crate::cpus::Cpus;
use crate::ethtool::Value;
use crate::journal::CpuFormat;

#[cfg(doc)]
use crate::root::Root;

/// Runs every check that applies, area by area. Checks of the network interface need one.
#[must_use]
pub fn all(subject: &Subject) -> Vec<Finding> {
    look(subject, |_| true)
}

/// Runs the checks of the network interface alone, if the subject has one.
#[must_use]
pub fn of_interface(subject: &Subject) -> Vec<Finding> {
    look(subject, |area| area == Area::Nic)
}

fn look(subject: &Subject, wanted: impl Fn(Area) -> bool) -> Vec<Finding> {
    let nic = subject.interface.is_some();
    let checks = CHECKS.iter().copied().flatten();
    let checks = checks.filter(|check| wanted(check.area) && (nic || check.area != Area::Nic));
    checks.map(|check| check.look_at(subject)).collect()
}

/// Names and areas of all checks, in order.
pub fn names() -> impl Iterator<Item = (&'static str, Area)> {
    CHECKS.iter().copied().flatten().map(|check| (check.name, check.area))
}

const CHECKS: &[&[Check]] = &[
    kernel::CHECKS,
    scheduling::CHECKS,
    cpus::CHECKS,
    irqs::CHECKS,
    power::CHECKS,
    clock::CHECKS,
    memory::CHECKS,
    virtualisation::CHECKS,
    nic::CHECKS,
    nic_users::CHECKS,
    logging::CHECKS,
];

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check, in words with hyphens; its meaning is stable.
    pub name: &'static str,
    /// Area of the check.
    pub area: Area,
    /// State found.
    pub found: String,
    /// State a cycle needs.
    pub wanted: String,
    /// Reason why it matters.
    pub why: &'static str,
    /// Remedy; empty if there is nothing to do.
    pub fix: String,
    /// Causes of lateness that it gives rise to, in the words of `onbeat run --explain` and
    /// `--watch`.
    pub causes: &'static [Kind],
    /// Severity.
    pub severity: Severity,
    /// True if [`Finding::changes`] fixes it, at the longest until the next boot.
    pub fixable: bool,
    /// Changes that fix it, in this order.
    #[serde(skip)]
    pub changes: Vec<Change>,
}

impl Finding {
    /// Replaces the check's usual wanted state.
    fn wanting(mut self, wanted: impl Into<String>) -> Self {
        self.wanted = wanted.into();
        self
    }

    /// Adds a change that writes `value` to `path`.
    fn writing(self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.changing(Change::Write { path: path.into(), value: value.into() })
    }

    /// Adds a change that restricts a file to these CPUs.
    fn keeping_to(self, path: impl Into<String>, format: CpuFormat, cpus: &Cpus) -> Self {
        self.changing(Change::Cpus { path: path.into(), format, cpus: cpus.clone() })
    }

    /// Adds a change of settings of the interface's driver, all of one block.
    fn driving(self, subject: &Subject, values: Vec<Value>) -> Self {
        let interface = nic::interface(subject).to_owned();
        self.changing(Change::Driver { interface, values })
    }

    /// Adds a change that runs a command, undone by the other. Both are words between spaces.
    fn running(self, command: &str, undo: &str) -> Self {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        self.changing(Change::Run { command: words(command), undo: words(undo) })
    }

    /// Adds a change.
    fn changing(mut self, change: Change) -> Self {
        self.changes.push(change);
        self.fixable = true;
        self
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The state is as wanted.
    Ok,
    /// Costs little, or is not known here.
    Note,
    /// Some cycles will be late.
    Warning,
    /// The cycle cannot be held, or cannot even be requested.
    Critical,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Critical => "critical",
        })
    }
}

/// Area of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Kernel build and options.
    Kernel,
    /// Rights, limits, rival threads.
    Scheduling,
    /// CPU of the cycle.
    Cpus,
    /// Interrupts.
    Interrupts,
    /// Sleep states and frequencies.
    Power,
    /// Clocks, timers, watchdogs.
    Clock,
    /// Memory.
    Memory,
    /// Hypervisor and firmware.
    Virtualisation,
    /// Network interface.
    Nic,
    /// Log and console.
    Logging,
}

impl Area {
    /// Causes of lateness that findings of this area give rise to; of frames that come late or not
    /// at all there are none.
    #[must_use]
    pub const fn causes(self) -> &'static [Kind] {
        match self {
            Self::Kernel => &[Kind::Task, Kind::Irq, Kind::Softirq],
            Self::Scheduling => &[Kind::Task, Kind::MinorFault, Kind::MajorFault],
            Self::Cpus => &[Kind::Task, Kind::Softirq, Kind::Timer],
            Self::Interrupts => &[Kind::Irq, Kind::Softirq],
            Self::Power => &[Kind::Own, Kind::Unknown],
            Self::Clock => &[Kind::Timer],
            Self::Memory => &[Kind::Task, Kind::MinorFault, Kind::MajorFault],
            Self::Virtualisation => &[Kind::Steal, Kind::Stall],
            Self::Nic => &[],
            Self::Logging => &[Kind::Own, Kind::Task],
        }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "Kernel",
            Self::Scheduling => "Scheduling",
            Self::Cpus => "CPU of the cycle",
            Self::Interrupts => "Interrupts",
            Self::Power => "Power",
            Self::Clock => "Clocks and timers",
            Self::Memory => "Memory",
            Self::Virtualisation => "Below the kernel",
            Self::Nic => "Network interface",
            Self::Logging => "Logging",
        })
    }
}

/// Check: its name, its area, and the function that examines the machine.
struct Check {
    name: &'static str,
    area: Area,
    wanted: &'static str,
    why: &'static str,
    look: fn(&Check, &Subject) -> Finding,
}

impl Check {
    fn look_at(&self, subject: &Subject) -> Finding {
        (self.look)(self, subject)
    }

    fn ok(&self, found: impl Into<String>) -> Finding {
        self.finding(Severity::Ok, found, "")
    }

    fn note(&self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Severity::Note, found, fix)
    }

    fn warning(&self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Severity::Warning, found, fix)
    }

    fn critical(&self, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Severity::Critical, found, fix)
    }

    fn finding(&self, severity: Severity, found: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            name: self.name,
            area: self.area,
            found: printable(&found.into()),
            wanted: self.wanted.to_owned(),
            why: self.why,
            fix: printable(&fix.into()),
            causes: self.area.causes(),
            severity,
            fixable: false,
            changes: Vec::new(),
        }
    }
}

/// Makes a file's content safe to print: files may contain anything, but no control characters and
/// no long garbage reach a terminal.
fn printable(text: &str) -> String {
    const MOST: usize = 600;
    let plain = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut printable: String = text.chars().take(MOST).map(plain).collect();
    if text.chars().nth(MOST).is_some() {
        printable.push('…');
    }
    printable
}

/// At most `most` of `names`, and the number of the others.
fn some_of(names: &[String], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
