//! Counters of a thread, read from outside now and then, where the kernel's events are not to be
//! had.

use machine::task::Counters;
use rt::clock::{Clock, MonotonicClock};
use types::cause::Kind;

use super::Subject;
use super::classify::{Tally, UNKNOWN};

/// Counts so far.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// Its counters at the first look into the window, and the period that was in.
    before: Option<(Counters, u64)>,
    /// Counts reported already: preemptions, sleeps, minor and major faults.
    counted: [u64; 4],
}

impl Counted {
    /// Looks once more.
    pub(super) fn look(&mut self, subject: &Subject, tally: &mut Tally) {
        if !subject.window.is_open() {
            return;
        }
        let now = MonotonicClock.now().as_nanos();
        // After its end a thread's own cleaning up would count.
        let Some(period) = subject.window.period_of(now) else { return };
        let Some(counters) = Counters::read(subject.tid) else { return };
        let (before, waits) = match subject.window.counted() {
            Some(([voluntary, involuntary, minor_faults, major_faults], waits)) => {
                (Counters { voluntary, involuntary, minor_faults, major_faults }, waits)
            }
            // One wait in each period since the first look, as far as it was not overrun, and that
            // of the period itself.
            None => {
                let (before, first) = *self.before.get_or_insert((counters, period));
                (before, period - first + 1)
            }
        };
        let found = [
            (Kind::Task, counters.involuntary.saturating_sub(before.involuntary)),
            (Kind::Sleep, counters.voluntary.saturating_sub(before.voluntary).saturating_sub(waits)),
            (Kind::MinorFault, counters.minor_faults.saturating_sub(before.minor_faults)),
            (Kind::MajorFault, counters.major_faults.saturating_sub(before.major_faults)),
        ];
        for ((kind, count), counted) in found.into_iter().zip(&mut self.counted) {
            if count > *counted {
                tally.add(kind, UNKNOWN.to_owned(), count - *counted, period, now, None);
                *counted = count;
            }
        }
    }
}

/// The system call a thread of this process sleeps in, if it does.
pub(super) fn system_call(tid: i32) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall")).ok()?;
    let number = text.split_whitespace().next()?.parse().ok()?;
    Some(number).filter(|&number| number >= 0 && number != super::WAIT)
}
