//! Late cycles with their causes, and the sentence of a late cycle.

mod report;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::cause::Kind;
use crate::named::named;
use crate::number::grouped;

pub use report::{CauseTable, CauseTotal, LateReport, LateSpan};

named! {
    /// Late event of a cycle.
    #[derive(Default)]
    Late {
        /// The start, by the wake-up latency.
        #[default]
        Start = "start";
        /// The end, by the time since the next release.
        End = "end";
    }
}

/// Late cycle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct LateCycle {
    /// Number of the cycle.
    pub cycle: u64,
    /// Lateness, ns.
    pub late_ns: u64,
    /// Late event: its start, or its end.
    pub late: Late,
    /// Release, ns of `CLOCK_MONOTONIC`.
    pub release_ns: u64,
    /// Start, likewise.
    pub start_ns: u64,
    /// End, likewise.
    pub end_ns: u64,
    /// Causes, the largest first; they add up to `late_ns`. The diagnostics document leaves out
    /// the smallest.
    pub causes: Vec<Cause>,
}

impl LateCycle {
    /// The same with the causes that its sentence names, and no other.
    #[must_use]
    pub fn with_largest_causes(mut self) -> Self {
        self.causes.truncate(NAMED);
        self
    }
}

impl Ord for LateCycle {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        (self.late_ns, self.cycle).cmp(&(other.late_ns, other.cycle))
    }
}

impl PartialOrd for LateCycle {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LateCycle {
    /// Writes for example "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61
    /// us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.late {
            Late::Start => "started",
            Late::End => "ended",
        };
        write!(f, "cycle {} {what} {} late", grouped(self.cycle), ShortTime(self.late_ns))?;
        // Causes of less than a hundredth are left out.
        let matters = |ns: u64| ns.saturating_mul(100) >= self.late_ns;
        let named = self.causes.iter().filter(|cause| matters(cause.ns)).take(NAMED).count();
        for (number, cause) in self.causes.iter().take(named).enumerate() {
            write!(f, "{} {cause}", if number == 0 { ":" } else { "," })?;
        }
        let named_ns: u64 = self.causes.iter().take(named).map(|cause| cause.ns).sum();
        let rest = self.late_ns.saturating_sub(named_ns);
        if rest > 0 { write!(f, ", others {}", ShortTime(rest)) } else { Ok(()) }
    }
}

/// Most causes named in one line; the rest is summed up.
const NAMED: usize = 5;

/// Share of a cycle's lateness.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize), serde(default))]
pub struct Cause {
    /// Kind of the cause.
    pub kind: Kind,
    /// Name: of the thread, number and name of the interrupt, or phase of the cycle.
    pub name: String,
    /// Share, ns.
    pub ns: u64,
}

impl fmt::Display for Cause {
    /// Writes for example "kworker/1:2 ran 120 us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, time) = (&self.name, ShortTime(self.ns));
        match self.kind {
            Kind::Task => write!(f, "{name} ran {time}"),
            Kind::Irq => write!(f, "irq {name} {time}"),
            Kind::Softirq => write!(f, "softirq {name} {time}"),
            Kind::Timer => write!(f, "timer {name} {time}"),
            Kind::Steal => write!(f, "asleep in the hypervisor {time}: steal"),
            Kind::Stall => write!(f, "the whole {name} stalled {time}"),
            Kind::Own => write!(f, "our own {name} took {time}"),
            Kind::Unknown => write!(f, "{name} {time}: unknown"),
            // Of threads that are watched; no trace of a late cycle shows them.
            watched @ (Kind::Sleep
            | Kind::MinorFault
            | Kind::MajorFault
            | Kind::SystemCall
            | Kind::BlockingCall) => write!(f, "{watched} {name} {time}"),
        }
    }
}

/// Duration for people: "183 us", "3.4 ms", "0.4 us".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortTime(pub u64);

impl fmt::Display for ShortTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        let text = match self.0 {
            0..=9_949 => format!("{:.1} us", ns / 1e3),
            9_950..=999_499 => format!("{:.0} us", ns / 1e3),
            999_500..=999_949_999 => format!("{:.1} ms", ns / 1e6),
            _ => format!("{:.1} s", ns / 1e9),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests;
