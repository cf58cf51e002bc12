//! Records of late cycles as attribution needs them, and the sum of their causes.

use record::{CycleRecord, Phase};
pub use types::cause::Kind;
pub use types::late::{Cause, Late, LateCycle};

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
                if phase == Phase::Transmit {
                    // Simulated SubDevices answer as the frame is sent.
                    end = end.saturating_add(self.record.simulation_ns.into());
                }
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

/// Sum of causes; shares of equal causes are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Causes(Vec<Cause>);

impl Causes {
    pub(crate) fn add(&mut self, kind: Kind, name: &str, ns: u64) {
        if ns == 0 {
            return;
        }
        match self.0.iter_mut().find(|cause| cause.kind == kind && cause.name == name) {
            Some(cause) => cause.ns = cause.ns.saturating_add(ns),
            None => self.0.push(Cause { kind, name: name.to_owned(), ns }),
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, cause| sum.saturating_add(cause.ns))
    }

    /// Causes, the largest first, adding up to exactly `total_ns`: a shortfall is added as unknown,
    /// an excess is taken from all in proportion.
    pub(crate) fn adding_up_to(mut self, total_ns: u64) -> Vec<Cause> {
        let sum = self.total();
        if sum > total_ns {
            for cause in &mut self.0 {
                let share = u128::from(cause.ns) * u128::from(total_ns) / u128::from(sum);
                // Rounded down, it is at most `total_ns`.
                cause.ns = share as u64;
            }
            self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
            let rounding = total_ns - self.total();
            if let Some(largest) = self.0.first_mut() {
                largest.ns += rounding;
            }
        } else {
            self.add(Kind::Unknown, NOT_RECORDED, total_ns - sum);
        }
        self.0.retain(|cause| cause.ns > 0);
        self.0.sort_by_key(|cause| std::cmp::Reverse(cause.ns));
        self.0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cause> {
        self.0.iter()
    }
}

/// Name of an unknown cause without events.
pub(crate) const NOT_RECORDED: &str = "nothing recorded";

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

    fn causes(shares: &[(Kind, &str, u64)]) -> Causes {
        let mut causes = Causes::default();
        for &(kind, name, ns) in shares {
            causes.add(kind, name, ns);
        }
        causes
    }

    #[test]
    fn what_is_missing_is_unknown_and_what_is_too_much_is_shared() {
        let few =
            causes(&[(Kind::Task, "a", 30), (Kind::Irq, "b", 10), (Kind::Task, "a", 20)]).adding_up_to(100);
        assert_eq!(few.iter().map(|it| it.ns).collect::<Vec<_>>(), [50, 40, 10]);
        assert_eq!((few[1].kind, few[1].name.as_str()), (Kind::Unknown, NOT_RECORDED));
        let many = causes(&[(Kind::Task, "a", 100), (Kind::Steal, "b", 200), (Kind::Irq, "c", 1)])
            .adding_up_to(150);
        assert_eq!(
            many.iter().map(|it| (it.name.as_str(), it.ns)).collect::<Vec<_>>(),
            [("b", 101), ("a", 49)]
        );
        assert!(causes(&[(Kind::Task, "a", 5)]).adding_up_to(0).is_empty());
    }
}
