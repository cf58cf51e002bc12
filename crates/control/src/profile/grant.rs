//! Requests, grants, and their undoing.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use machine::cpus::Cpus;
use machine::shield::{Shield, ShieldReport};
use machine::task;

use super::{Residency, Scheduling, letters};
use crate::always_on::{AlwaysOn, Held};
use crate::sys::memory;
use rt::scheduling::{self, Attributes};

/// Grants to the calling thread, as long as this lives. It belongs to that thread.
#[derive(Debug)]
pub struct Granted {
    pub(super) grants: Grants,
    pub(super) undo: Undo,
    pub(super) thread: PhantomData<*const ()>,
}

impl Granted {
    /// The answers alone, to be told to others.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Gives everything back; what could not be put back, each a sentence.
    #[must_use]
    pub fn release(mut self) -> Vec<String> {
        self.undo.undo()
    }
}

impl Deref for Granted {
    type Target = Grants;

    fn deref(&self) -> &Grants {
        &self.grants
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.grants.fmt(f)
    }
}

/// Requests and grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    /// P.
    pub scheduling: Grant<Scheduling>,
    /// Scheduling of the thread, whether P was asked for or not.
    pub scheduled: Scheduled,
    /// M.
    pub memory: Grant<Residency>,
    /// Bound to this CPU.
    pub cpu: Grant<usize>,
    /// C: this CPU is kept free of everything else.
    pub shield: Grant<usize>,
    /// S: wakes up this long before a release, and spins.
    pub spin: Grant<Duration>,
    /// Settings that no profile has to ask for.
    pub always_on: AlwaysOn,
    /// Threads and interrupts moved for C.
    pub shield_report: Option<ShieldReport>,
}

impl Grants {
    /// The letters granted, in the order PMCS; "none" if there are none.
    #[must_use]
    pub fn letters(&self) -> String {
        let Self { scheduling, memory, shield, spin, .. } = self;
        letters([scheduling.is_granted(), memory.is_granted(), shield.is_granted(), spin.is_granted()])
    }

    /// The letters asked for.
    #[must_use]
    pub fn asked(&self) -> String {
        let Self { scheduling, memory, shield, spin, .. } = self;
        letters([
            scheduling.asked().is_some(),
            memory.asked().is_some(),
            shield.asked().is_some(),
            spin.asked().is_some(),
        ])
    }

    /// Time before a release to wake up and spin; zero without S.
    #[must_use]
    pub fn spin_margin(&self) -> Duration {
        self.spin.asked().filter(|_| self.spin.is_granted()).unwrap_or_default()
    }

    /// The reasons of all refusals, each a sentence for people.
    pub fn refusals(&self) -> impl Iterator<Item = String> + '_ {
        let scheduling =
            self.scheduling.refusal().map(|(asked, why)| format!("{asked} was refused ({why})"));
        let memory = self.memory.refusal().map(|(_, why)| format!("the memory lock was refused ({why})"));
        let cpu = self.cpu.refusal().map(|(asked, why)| format!("CPU {asked} was refused ({why})"));
        let shield = self
            .shield
            .refusal()
            .map(|(asked, why)| format!("the shield of CPU {asked} was refused ({why})"));
        let spin = self.spin.refusal().map(|(_, why)| format!("the spinning sleep was refused ({why})"));
        [scheduling, memory, cpu, shield, spin].into_iter().flatten()
    }

    /// Remarks worth knowing that were not asked for, each a sentence: what always on was refused, and what is left on a
    /// shielded CPU.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let left = self.shield_report.iter().flat_map(|report| &report.left);
        let cpu = self.shield.asked().unwrap_or_default();
        self.scheduled
            .note()
            .into_iter()
            .chain(self.always_on.notes())
            .chain(left.map(move |left| format!("left on CPU {cpu}, {left}")))
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scheduling {
            Grant::Refused { asked, reason } => {
                write!(f, "{asked} refused ({reason}), {} instead", self.scheduled)?;
            }
            _ => write!(f, "{}", self.scheduled)?,
        }
        match &self.memory {
            Grant::NotAsked => write!(f, ", memory not locked")?,
            Grant::Granted(_) => write!(f, ", memory locked")?,
            Grant::Refused { reason, .. } => write!(f, ", memory lock refused ({reason})")?,
        }
        match &self.cpu {
            Grant::NotAsked => write!(f, ", any CPU")?,
            Grant::Granted(cpu) => write!(f, ", CPU {cpu}")?,
            Grant::Refused { asked, reason } => write!(f, ", CPU {asked} refused ({reason})")?,
        }
        match (&self.shield, &self.shield_report) {
            (Grant::Granted(_), Some(report)) => write!(f, " shielded by {}", report.method)?,
            (Grant::Refused { reason, .. }, _) => write!(f, ", shield refused ({reason})")?,
            _ => {}
        }
        match &self.spin {
            Grant::NotAsked => Ok(()),
            Grant::Granted(margin) => write!(f, ", spins {margin:?}"),
            Grant::Refused { reason, .. } => write!(f, ", spinning sleep refused ({reason})"),
        }
    }
}

/// Scheduling of a thread, in the kernel's own words, and that before it asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    now: String,
    /// The real-time policy it was started with, by `chrt` or whoever started the program.
    from_outside: Option<String>,
}

impl Scheduled {
    pub(super) fn new(found: Option<Attributes>, now: Option<Attributes>) -> Self {
        let words = |attributes: Option<Attributes>| {
            attributes.map_or_else(|| "unknown scheduling".to_owned(), |it| it.to_string())
        };
        let from_outside = found.filter(Attributes::is_real_time).map(|it| it.to_string());
        Self { now: words(now), from_outside }
    }

    /// A sentence if a real-time policy came from outside: what became of it.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let Self { now, from_outside } = self;
        let found = from_outside.as_ref()?;
        Some(if found == now {
            format!("scheduled as {now}, which it was started with")
        } else {
            format!(
                "scheduled as {now}, as the robot file or the command line asks, instead of {found}, which it was started \
                 with: leave P out of the profile to keep that"
            )
        })
    }
}

impl fmt::Display for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, from_outside } = self;
        match from_outside {
            Some(found) if found != now => write!(f, "{now} (it was started with {found})"),
            _ => f.write_str(now),
        }
    }
}

/// One thing asked for, and the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant<T> {
    /// Not asked for.
    NotAsked,
    /// Asked and granted.
    Granted(T),
    /// Asked and refused.
    Refused {
        /// The request.
        asked: T,
        /// Why it was refused, and what to do.
        reason: String,
    },
}

impl<T: Copy> Grant<T> {
    pub(crate) fn ask(asked: Option<T>, request: impl FnOnce(T) -> Result<(), String>) -> Self {
        match asked {
            None => Self::NotAsked,
            Some(asked) => match request(asked) {
                Ok(()) => Self::Granted(asked),
                Err(reason) => Self::Refused { asked, reason },
            },
        }
    }

    /// True if it was asked for and granted.
    #[must_use]
    pub fn is_granted(&self) -> bool {
        matches!(self, Self::Granted(_))
    }

    /// The request, whether granted or not.
    #[must_use]
    pub fn asked(&self) -> Option<T> {
        match self {
            Self::NotAsked => None,
            Self::Granted(asked) | Self::Refused { asked, .. } => Some(*asked),
        }
    }

    /// Refusals and their reasons.
    #[must_use]
    pub fn refusal(&self) -> Option<(T, &str)> {
        match self {
            Self::Refused { asked, reason } => Some((*asked, reason)),
            _ => None,
        }
    }
}

/// Undoing of every grant.
#[derive(Debug)]
pub(super) struct Undo {
    pub(super) shield: Option<Shield>,
    scheduling: Option<Attributes>,
    affinity: Option<Cpus>,
    memory: bool,
    _always_on: Option<Held>,
}

impl Undo {
    pub(super) fn new(held: Held) -> Self {
        Self { shield: None, scheduling: None, affinity: None, memory: false, _always_on: Some(held) }
    }

    pub(super) fn lock_memory(&mut self) -> io::Result<()> {
        let mut holders = MEMORY_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        memory::lock_all()?;
        *holders += 1;
        self.memory = true;
        Ok(())
    }

    pub(super) fn bind(&mut self, cpu: usize) -> io::Result<()> {
        let before = task::affinity(task::current())?;
        scheduling::set_cpu(cpu)?;
        self.affinity = Some(before);
        Ok(())
    }

    pub(super) fn schedule(&mut self, asked: Scheduling) -> io::Result<()> {
        let before = scheduling::attributes()?;
        asked.apply()?;
        self.scheduling = Some(before);
        Ok(())
    }

    fn undo(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        let mut put_back = |what: &str, done: io::Result<()>| {
            if let Err(error) = done {
                failures.push(format!("{what} could not be put back: {error}"));
            }
        };
        if let Some(before) = self.scheduling.take() {
            put_back("the scheduling policy", before.restore());
        }
        if let Some(before) = self.affinity.take() {
            put_back("the CPUs of the cycle's thread", task::set_affinity(task::current(), &before));
        }
        if std::mem::take(&mut self.memory) {
            let mut holders = MEMORY_HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
            *holders -= 1;
            if *holders == 0 {
                put_back("the memory lock", memory::unlock_all());
            }
        }
        if let Some(shield) = self.shield.take() {
            failures.extend(shield.lower().iter().map(ToString::to_string));
        }
        self._always_on = None;
        failures
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        self.undo();
    }
}

/// Threads of this process that asked for the memory lock, which is the process's.
static MEMORY_HOLDERS: Mutex<usize> = Mutex::new(0);

/// True if the thread may change policies of others, whatever limits it has: CAP_SYS_NICE.
pub(super) fn may_schedule() -> bool {
    const CAP_SYS_NICE: u32 = 23;
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_some_and(|mask| mask >> CAP_SYS_NICE & 1 != 0)
}
