//! Late cycles with their causes, and the sentence of a late cycle.

mod report;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::cause::Kind;
use crate::macros::named;
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
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn cause(kind: Kind, name: &str, ns: u64) -> Cause {
        Cause { kind, name: name.to_owned(), ns }
    }

    fn late_by(causes: Vec<Cause>) -> LateCycle {
        let late_ns = causes.iter().map(|cause| cause.ns).sum();
        LateCycle {
            cycle: 48_213,
            late_ns,
            late: Late::Start,
            release_ns: 0,
            start_ns: late_ns,
            end_ns: late_ns,
            causes,
        }
    }

    #[test]
    fn a_late_cycle_is_one_line() {
        let cycle = late_by(vec![
            cause(Kind::Task, "kworker/1:2", 120_000),
            cause(Kind::Irq, "24 eth0", 61_000),
            cause(Kind::Unknown, "waking up", 1_700),
        ]);
        assert_eq!(
            cycle.to_string(),
            "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61 us, others 1.7 us"
        );
    }

    #[test]
    fn causes_are_readable() {
        let shown = |kind, name: &str, ns| Cause { kind, name: name.to_owned(), ns }.to_string();
        assert_eq!(shown(Kind::Task, "kworker/1:2", 120_000), "kworker/1:2 ran 120 us");
        assert_eq!(shown(Kind::Irq, "24 eth0", 61_200), "irq 24 eth0 61 us");
        assert_eq!(shown(Kind::Steal, "hypervisor", 3_400_000), "asleep in the hypervisor 3.4 ms: steal");
        assert_eq!(shown(Kind::Own, "controller", 412_000), "our own controller took 412 us");
        assert_eq!(shown(Kind::Unknown, "nothing recorded", 400), "nothing recorded 0.4 us: unknown");
        assert_eq!(
            [ShortTime(9_960), ShortTime(999_600), ShortTime(1_200_000_000)].map(|it| it.to_string()),
            ["10 us", "1.0 ms", "1.2 s"]
        );
    }

    /// The sentence of a cycle with its largest causes is the sentence of the cycle.
    #[test]
    fn left_out_causes_do_not_change_the_sentence() {
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let causes = names.map(|name| cause(Kind::Task, name, 1_000)).to_vec();
        let (all, largest) = (late_by(causes.clone()), late_by(causes).with_largest_causes());
        assert_eq!(largest.causes.len(), NAMED);
        assert_eq!(largest.to_string(), all.to_string());
        assert!(all.to_string().ends_with("e ran 1.0 us, others 2.0 us"), "{all}");
    }
}
