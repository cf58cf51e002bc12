//! Answers to requests, for messages and programs.

use std::fmt;
use std::time::Duration;

use crate::scheduling::Attributes;
use machine::shield::ShieldReport;
use types::Profile;

use super::answer::Grant;
use super::{Residency, Scheduling};
use crate::always_on::AlwaysOn;

/// Requests and grants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grants {
    /// P.
    pub scheduling: Grant<Scheduling>,
    /// Scheduling of the thread, whether P was requested or not.
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
    /// The letters granted.
    #[must_use]
    pub fn letters(&self) -> Profile {
        let Self { scheduling, memory, shield, spin, .. } = self;
        Profile {
            priority: scheduling.is_granted(),
            memory: memory.is_granted(),
            shield: shield.is_granted(),
            spin: spin.is_granted(),
        }
    }

    /// The requested letters.
    #[must_use]
    pub fn requested(&self) -> Profile {
        let Self { scheduling, memory, shield, spin, .. } = self;
        Profile {
            priority: scheduling.requested().is_some(),
            memory: memory.requested().is_some(),
            shield: shield.requested().is_some(),
            spin: spin.requested().is_some(),
        }
    }

    /// Time before a release to wake up and spin; zero without S.
    #[must_use]
    pub fn spin_margin(&self) -> Duration {
        self.spin.requested().filter(|_| self.spin.is_granted()).unwrap_or_default()
    }

    /// The reasons of all refusals, each a sentence.
    pub fn refusals(&self) -> impl Iterator<Item = String> + '_ {
        let scheduling = self
            .scheduling
            .refusal()
            .map(|(requested, why)| format!("{} was refused ({why})", Attributes::from(requested)));
        let memory = self.memory.refusal().map(|(_, why)| format!("the memory lock was refused ({why})"));
        let cpu = self.cpu.refusal().map(|(requested, why)| format!("CPU {requested} was refused ({why})"));
        let shield = self
            .shield
            .refusal()
            .map(|(requested, why)| format!("the shield of CPU {requested} was refused ({why})"));
        let spin = self.spin.refusal().map(|(_, why)| format!("the spinning sleep was refused ({why})"));
        [scheduling, memory, cpu, shield, spin].into_iter().flatten()
    }

    /// Remarks in addition to the requests, each a sentence: refusals of the always-on settings,
    /// and what is left on a shielded CPU.
    pub fn notes(&self) -> impl Iterator<Item = String> + '_ {
        let left = self.shield_report.iter().flat_map(|report| &report.left);
        let cpu = self.shield.requested().unwrap_or_default();
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
            Grant::Refused { requested, reason } => {
                let requested = Attributes::from(*requested);
                write!(f, "{requested} refused ({reason}), {} instead", self.scheduled)?;
            }
            _ => write!(f, "{}", self.scheduled)?,
        }
        match &self.memory {
            Grant::NotRequested => write!(f, ", memory not locked")?,
            Grant::Granted(_) => write!(f, ", memory locked")?,
            Grant::Refused { reason, .. } => write!(f, ", memory lock refused ({reason})")?,
        }
        match &self.cpu {
            Grant::NotRequested => write!(f, ", any CPU")?,
            Grant::Granted(cpu) => write!(f, ", CPU {cpu}")?,
            Grant::Refused { requested, reason } => write!(f, ", CPU {requested} refused ({reason})")?,
        }
        match (&self.shield, &self.shield_report) {
            (Grant::Granted(_), Some(report)) => write!(f, " shielded by {}", report.method)?,
            (Grant::Refused { reason, .. }, _) => write!(f, ", shield refused ({reason})")?,
            _ => {}
        }
        match &self.spin {
            Grant::NotRequested => Ok(()),
            Grant::Granted(margin) => write!(f, ", spins {margin:?}"),
            Grant::Refused { reason, .. } => write!(f, ", spinning sleep refused ({reason})"),
        }
    }
}

/// Scheduling of a thread as the kernel reports it, now and before the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduled {
    now: String,
    /// The real-time policy it was started with, by `chrt` or another parent.
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

    /// A sentence about a real-time policy from outside, if there was one.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let Self { now, from_outside } = self;
        let found = from_outside.as_ref()?;
        Some(if found == now {
            format!("scheduled as {now}, which it was started with")
        } else {
            format!(
                "scheduled as {now}, as the robot file or the command line says, instead of \
                 {found}, which it was started with: leave P out of the profile to keep that"
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
