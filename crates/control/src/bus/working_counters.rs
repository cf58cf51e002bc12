//! History of the working counters: a fixed ring of their changes, written by the cycle.

use types::{WorkingCounter, WorkingCounterChange};

/// Changes kept.
const KEPT: usize = 32;

/// Working counters since all SubDevices first took part: counters of the bring-up are short.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    /// All were complete once.
    has_begun: bool,
    /// Cycles in which one was short.
    pub(super) short_cycles: u64,
    /// Cycle since which one working counter has been short.
    pub(super) short_since: Option<u64>,
    changes: [WorkingCounterChange; KEPT],
    /// Changes so far.
    written: usize,
}

impl History {
    /// Takes the working counters of a cycle.
    pub(super) fn note(&mut self, cycle: u64, counters: impl Iterator<Item = WorkingCounter>) {
        let mut now = WorkingCounterChange { cycle, ..WorkingCounterChange::default() };
        let mut count = 0;
        for (datagram, it) in (0..).zip(counters) {
            count += 1;
            if !it.is_complete() {
                if now.short == 0 {
                    now = WorkingCounterChange {
                        datagram,
                        expected: it.expected,
                        received: it.received,
                        ..now
                    };
                }
                now.short += 1;
            }
        }
        self.has_begun |= count > 0 && now.short == 0;
        if !self.has_begun {
            return;
        }
        if now.short > 0 {
            self.short_cycles += 1;
            self.short_since.get_or_insert(cycle);
        } else {
            self.short_since = None;
        }
        let last = self.changes().last().unwrap_or_default();
        if (WorkingCounterChange { cycle: last.cycle, ..now }) != last {
            self.changes[self.written % KEPT] = now;
            self.written += 1;
        }
    }

    /// The kept changes, oldest first.
    pub(super) fn changes(&self) -> impl Iterator<Item = WorkingCounterChange> {
        (self.written.saturating_sub(KEPT)..self.written).map(|number| self.changes[number % KEPT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(received: &[Option<u16>]) -> impl Iterator<Item = WorkingCounter> {
        received.iter().map(|&received| WorkingCounter { expected: 3, received })
    }

    // feature(diagnosis): working counters: cycles in which one was short, since when, and the last changes with their cycles
    #[test]
    fn a_change_is_kept_with_its_cycle_and_what_stays_is_not() {
        let mut history = History::default();
        // On the way up.
        history.note(1, counters(&[Some(0), None]));
        history.note(2, counters(&[]));
        assert_eq!((history.short_cycles, history.changes().count()), (0, 0));
        history.note(3, counters(&[Some(3), Some(3)]));
        for cycle in 4..7 {
            history.note(cycle, counters(&[Some(3), Some(1)]));
        }
        assert_eq!((history.short_cycles, history.short_since), (3, Some(4)));
        history.note(7, counters(&[None, Some(1)]));
        history.note(8, counters(&[Some(3), Some(3)]));
        history.note(9, counters(&[Some(3), Some(3)]));
        assert_eq!((history.short_cycles, history.short_since), (4, None));
        let kept: Vec<_> = history.changes().collect();
        let one = WorkingCounterChange { cycle: 4, short: 1, datagram: 1, expected: 3, received: Some(1) };
        let both = WorkingCounterChange { cycle: 7, short: 2, datagram: 0, expected: 3, received: None };
        assert_eq!(kept, [one, both, WorkingCounterChange { cycle: 8, ..WorkingCounterChange::default() }]);
    }

    #[test]
    fn of_many_changes_the_last_are_kept() {
        let mut history = History::default();
        for cycle in 0..1001 {
            history.note(cycle, counters(&[Some(if cycle % 2 == 0 { 3 } else { 2 })]));
        }
        let cycles: Vec<_> = history.changes().map(|it| it.cycle).collect();
        assert_eq!(cycles, (1001 - KEPT as u64..1001).collect::<Vec<_>>());
        assert_eq!(history.short_cycles, 500);
    }
}
