//! Late cycles: their records as attribution needs them.

use record::{CycleRecord, Phase};
use serde::Serialize;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
