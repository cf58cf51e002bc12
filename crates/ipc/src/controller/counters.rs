//! Counts of a controller process's answers.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::diagnostics::SpreadNs;

/// Answers of the controller process since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControllerCounters {
    /// Id of the process that holds the role; 0 for none.
    pub process: u64,
    /// Cycles answered before their deadline.
    pub answered: u64,
    /// Cycles not answered before their deadline while a process held the role.
    pub late: u64,
    /// Number of the last such cycle.
    pub last_late: u64,
    /// Most consecutive late ones.
    pub most_late_in_a_row: u64,
    /// Answers that came after their deadline, and were taken in the next cycle.
    pub taken_late: u64,
    /// Answers refused.
    pub wrong: u64,
    /// Cycle of the last one.
    pub last_wrong: u64,
    /// Reason for it, a code of [`super::Wrong`]; 0 for none.
    pub why_wrong: u64,
    /// Axis of the answer, by its index plus 1; 0 for none.
    pub wrong_axis: u64,
    /// Times the axes were stopped because answers were missing or wrong.
    pub stops: u64,
    /// Time from the request to the answer, of answers in time.
    pub response_ns: SpreadNs,
    /// Longest time the cycle stayed behind the deadline before it went on.
    pub worst_overstay_ns: u64,
}

/// The same, shared with the thread of the cycle, which writes them.
#[derive(Debug, Default)]
pub struct Counters([AtomicU64; 15]);

impl Counters {
    /// Puts the counts of a cycle in place of the former ones, all but the process.
    pub fn write(&self, counters: &ControllerCounters) {
        let it = counters;
        let SpreadNs { minimum, mean, maximum } = it.response_ns;
        let words = [
            it.answered,
            it.late,
            it.last_late,
            it.most_late_in_a_row,
            it.taken_late,
            it.wrong,
            it.last_wrong,
            it.why_wrong,
            it.stops,
            minimum,
            mean,
            maximum,
            it.worst_overstay_ns,
            it.wrong_axis,
        ];
        for (shared, word) in self.0[1..].iter().zip(words) {
            // Relaxed: each number is independent of the others.
            shared.store(word, Ordering::Relaxed);
        }
    }

    /// The newest counts.
    #[must_use]
    pub fn read(&self) -> ControllerCounters {
        let it = |index: usize| self.0[index].load(Ordering::Relaxed);
        ControllerCounters {
            process: it(0),
            answered: it(1),
            late: it(2),
            last_late: it(3),
            most_late_in_a_row: it(4),
            taken_late: it(5),
            wrong: it(6),
            last_wrong: it(7),
            why_wrong: it(8),
            stops: it(9),
            response_ns: SpreadNs { minimum: it(10), mean: it(11), maximum: it(12) },
            worst_overstay_ns: it(13),
            wrong_axis: it(14),
        }
    }

    /// Notes the process that holds the role, 0 for none.
    pub(crate) fn held_by(&self, process: u32) {
        self.0[0].store(process.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_comes_back() {
        let counters = Counters::default();
        let response_ns = SpreadNs { minimum: 10, mean: 11, maximum: 12 };
        let told = ControllerCounters {
            process: 14,
            wrong_axis: 15,
            answered: 1,
            late: 2,
            last_late: 3,
            most_late_in_a_row: 4,
            taken_late: 5,
            wrong: 6,
            last_wrong: 7,
            why_wrong: 8,
            stops: 9,
            response_ns,
            worst_overstay_ns: 13,
        };
        counters.write(&told);
        counters.held_by(14);
        assert_eq!(counters.read(), told);
    }
}
