//! Late cycles: their records as attribution needs them, and their causes once they are known.

use std::fmt;

use record::{CycleRecord, Phase};
use serde::Serialize;

use crate::cause::{Cause, Time};

/// Cycle with the end of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleTimes {
    /// Record of the cycle.
    pub record: CycleRecord,
    /// End of the previous cycle, ns, and its longest phase; `None` if unknown.
    pub previous: Option<(u64, Phase)>,
    /// Time between two releases, ns.
    pub period_ns: u64,
    /// Thread id of the cycle.
    pub thread: i32,
    /// True if the cycle transmits first and waits for the reply.
    pub waits_for_reply: bool,
}

/// Late event of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// The start, by the wake-up latency.
    Start,
    /// The end, by the time since the next release.
    End,
}

impl CycleTimes {
    /// Lateness and its kind: of the start after the release, or of the end after the next release,
    /// whichever is greater.
    #[must_use]
    pub fn lateness(&self) -> (Late, u64) {
        let start = self.record.wakeup_latency();
        let end = self.record.end_ns.saturating_sub(self.record.release_ns.saturating_add(self.period_ns));
        if end > start { (Late::End, end) } else { (Late::Start, start) }
    }

    /// Longest phase, apart from the wait for the wire.
    #[must_use]
    pub fn longest_phase(record: &CycleRecord) -> Phase {
        let phases = Phase::ALL.into_iter().filter(|&phase| phase != Phase::Wait);
        phases.max_by_key(|&phase| record.duration(phase)).unwrap_or(Phase::Update)
    }

    /// Phases with their ends, in the order in which they are attributed. A phase in several pieces
    /// (receiving, between waits for the wire) is joined.
    pub(crate) fn phase_ends(&self) -> Vec<(Phase, u64)> {
        let order = if self.waits_for_reply { &TRANSMIT_FIRST } else { &Phase::ALL };
        let mut end = self.record.start_ns;
        order
            .iter()
            .map(|&phase| {
                end = end.saturating_add(self.record.duration(phase));
                (phase, end)
            })
            .collect()
    }
}

const TRANSMIT_FIRST: [Phase; Phase::ALL.len()] = [
    Phase::Transmit,
    Phase::Wait,
    Phase::Receive,
    Phase::Read,
    Phase::Command,
    Phase::Update,
    Phase::Write,
    Phase::Publish,
];

/// Name of a phase in causes.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Receive => "receive",
        Phase::Read => "read",
        Phase::Command => "command",
        Phase::Update => "controller",
        Phase::Write => "write",
        Phase::Transmit => "transmit",
        Phase::Wait => "wait for the reply",
        Phase::Publish => "publish",
    }
}

/// Late cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
    /// Causes, the largest first; they add up to `late_ns`.
    pub causes: Vec<Cause>,
}

impl Ord for LateCycle {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.late_ns, self.cycle).cmp(&(other.late_ns, other.cycle))
    }
}

impl PartialOrd for LateCycle {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LateCycle {
    /// Writes for example "cycle 48 213 started 183 us late: kworker/1:2 ran 120 us, irq 24 eth0 61 us".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.late {
            Late::Start => "started",
            Late::End => "ended",
        };
        write!(f, "cycle {} {what} {} late", grouped(self.cycle), Time(self.late_ns))?;
        // Causes of less than a hundredth are left out.
        let matters = |ns: u64| ns.saturating_mul(100) >= self.late_ns;
        let named = self.causes.iter().filter(|cause| matters(cause.ns)).take(NAMED).count();
        for (number, cause) in self.causes.iter().take(named).enumerate() {
            write!(f, "{} {cause}", if number == 0 { ":" } else { "," })?;
        }
        let rest: u64 = self.causes.iter().skip(named).map(|cause| cause.ns).sum();
        if rest > 0 { write!(f, ", others {}", Time(rest)) } else { Ok(()) }
    }
}

/// Most causes named in one line; the rest is summed up.
const NAMED: usize = 5;

/// Number with grouped digits: 48213 as "48 213".
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Kind;

    #[test]
    fn a_cycle_is_late_by_its_start_or_by_its_end() {
        let cycle = |start, end| CycleTimes {
            record: CycleRecord { end_ns: end, ..CycleRecord::begin(1, 1_000, start) },
            previous: None,
            period_ns: 1_000,
            thread: 7,
            waits_for_reply: false,
        };
        assert_eq!(cycle(1_050, 1_900).lateness(), (Late::Start, 50));
        assert_eq!(cycle(1_050, 2_040).lateness(), (Late::Start, 50));
        assert_eq!(cycle(1_050, 2_300).lateness(), (Late::End, 300));
        assert_eq!(cycle(1_000, 1_000).lateness(), (Late::Start, 0));
    }

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
}
