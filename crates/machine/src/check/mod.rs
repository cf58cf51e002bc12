//! What makes a cycle late, checked: found, wanted, why it matters, and how to fix it.
//!
//! Each check is a pure function of the files below a [`Root`] (and, for a network interface, of what its driver
//! says), so that a test can put any machine before it. [`Subject`] is what is looked at, [`all`] runs every check,
//! and each gives a [`Finding`]. What a check may change is data too, a list of [`Change`]s: whoever makes them
//! remembers the old values first.
//!
//! The checks follow what the real-time documentation of the kernel, the real-time guides of the distributions,
//! LinuxCNC's notes on latency and the practice of the papers agree on. Numbers in `why` are orders of magnitude
//! known to the field, not measurements of this machine: the probe behind `onbeat doctor --for` measures.
//!
//! | module | what is checked |
//! |---|---|
//! | `change` | what a check may change, and how it is made |
//! | `kernel` | what kernel it is, and what it carries along |
//! | `scheduling` | rights, limits, rival threads |
//! | `cpus` | the cycle's CPU, and how alone the cycle is on it |
//! | `irqs` | interrupts on that CPU |
//! | `power` | sleep states and frequencies |
//! | `clock` | clocks, timers, watchdogs |
//! | `memory` | who moves pages, and when |
//! | `virtualisation` | who runs below the kernel: hypervisor, firmware |
//! | `nic`, `nic_users` | the interface the bus hangs on, and who else uses it |
//! | `logging` | who prints while the cycle runs |

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

pub use change::Change;
pub use subject::Subject;

use crate::cpus::Cpus;
use crate::journal::CpuFormat;

#[cfg(doc)]
use crate::root::Root;

/// Every check that applies, area by area. Those of the network interface need one.
#[must_use]
pub fn all(subject: &Subject) -> Vec<Finding> {
    let nic = subject.interface.is_some();
    let checks = CHECKS.iter().copied().flatten().filter(|check| nic || check.area != Area::Nic);
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

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, in words with hyphens: never changes its meaning.
    pub name: &'static str,
    /// What it is about.
    pub area: Area,
    /// What there is.
    pub found: String,
    /// What a cycle wants.
    pub wanted: String,
    /// Why it matters.
    pub why: &'static str,
    /// What to do about it; empty if there is nothing to do.
    pub fix: String,
    /// How bad it is.
    pub severity: Severity,
    /// Whether [`Finding::changes`] mends it, until the next boot at the longest.
    pub fixable: bool,
    /// What to change, in this order.
    #[serde(skip)]
    pub changes: Vec<Change>,
}

impl Finding {
    /// Another wish than the check's usual one.
    fn wanting(mut self, wanted: impl Into<String>) -> Self {
        self.wanted = wanted.into();
        self
    }

    /// Can be mended by writing `value` to `path`, too.
    fn writing(self, path: impl Into<String>, value: impl Into<String>) -> Self {
        self.changing(Change::Write { path: path.into(), value: value.into() })
    }

    /// Can be mended by keeping to these CPUs, too.
    fn keeping_to(self, path: impl Into<String>, format: CpuFormat, cpus: &Cpus) -> Self {
        self.changing(Change::Cpus { path: path.into(), format, cpus: cpus.clone() })
    }

    /// Can be mended by this command, too, and undone by the other. Both are words between spaces.
    fn running(self, command: &str, undo: &str) -> Self {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        self.changing(Change::Run { command: words(command), undo: words(undo) })
    }

    /// Can be mended by this change, too.
    fn changing(mut self, change: Change) -> Self {
        self.changes.push(change);
        self.fixable = true;
        self
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// As wanted.
    Ok,
    /// Costs little, or is not known here.
    Note,
    /// Some beats will be late.
    Warning,
    /// The cycle cannot be held, or cannot even be asked for.
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

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// What kernel it is.
    Kernel,
    /// Rights, limits, rival threads.
    Scheduling,
    /// The cycle's CPU.
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
    /// The network interface.
    Nic,
    /// Log and console.
    Logging,
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

/// A check: what it is about, and how to look.
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
            severity,
            fixable: false,
            changes: Vec::new(),
        }
    }
}

/// What stands in files may be anything: no control letters reach a terminal, and no page of rubbish.
fn printable(text: &str) -> String {
    const MOST: usize = 600;
    let plain = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut printable: String = text.chars().take(MOST).map(plain).collect();
    if text.chars().nth(MOST).is_some() {
        printable.push('…');
    }
    printable
}

/// At most `most` of `names`, and how many more there are.
fn some_of(names: &[String], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
