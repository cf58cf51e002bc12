//! The watch of a bus cycle, and of the tasks that run next to it.

use std::io;
use std::time::Duration;

use machine::task::Counters;
use record::CycleRecord;
use rt::clock::{Clock, MonotonicClock};
use types::Instant;
use types::cause::Kind;
use types::time::nanoseconds;

use super::classify::{Tally, UNKNOWN};
use super::{Detail, Disturbances, Subject, Watch, Window};

/// Watches the thread of a bus cycle from its first record on, and the threads of the tasks next to
/// it.
#[derive(Debug)]
pub struct CycleWatch {
    watch: Watch,
    window: Window,
    beside: Vec<Beside>,
    period: Duration,
    spin: Duration,
}

/// The window of a task next to the cycle.
#[derive(Debug)]
struct Beside {
    /// From its first release on.
    own: Window,
    /// From the first cycle that counts on.
    watched: Window,
}

impl CycleWatch {
    /// Of thread `tid`, with this period and spinning so long before a release; `expected` are the
    /// system calls that its link makes.
    ///
    /// # Errors
    /// The error of starting a thread.
    pub fn start(
        detail: Detail,
        tid: i32,
        (period, spin): (Duration, Duration),
        expected: &[&'static str],
    ) -> io::Result<Self> {
        let (watch, window) = (Watch::start(detail)?, Window::default());
        let subject =
            Subject { name: "cycle".to_owned(), tid, window: window.clone(), expected: expected.to_vec() };
        watch.add(subject);
        Ok(Self { watch, window, beside: Vec::new(), period, spin })
    }

    /// Also watches a task next to the cycle, with its own periods, while the cycles count.
    pub fn add(&mut self, task: Subject) {
        let (own, watched) = (task.window, Window::default());
        self.watch.add(Subject { window: watched.clone(), ..task });
        self.beside.push(Beside { own, watched });
    }

    /// Passes a record to the watch. With the first record the watch begins at the next release,
    /// and knows the numbers of all. Pass no record before the cycles that count, which are the
    /// cycles in Op.
    pub fn see(&self, record: &CycleRecord) {
        // A task may be released later than the cycle.
        for task in self.beside.iter().filter(|task| !task.watched.is_open()) {
            task.watched.open_as(&task.own, MonotonicClock.now());
        }
        if self.window.is_open() {
            return;
        }
        let period = nanoseconds(self.period);
        let first = record.release_ns.saturating_sub(record.cycle.saturating_mul(period));
        // The time between the cycle and this call is not watched: that the cycle counts was not
        // known yet.
        let from = MonotonicClock.now();
        self.window.open_from(from, Instant::from_nanos(first), self.period, self.spin);
    }

    /// The cycles that count are over: to be called before the cycle is asked to stop.
    pub fn close(&self) {
        let now = MonotonicClock.now();
        self.window.close(now);
        self.beside.iter().for_each(|task| task.watched.close(now));
    }

    /// Findings so far: of the cycle, then of the tasks in the order in which they were added.
    #[must_use]
    pub fn read(&self) -> Vec<Disturbances> {
        self.watch.read()
    }
}

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
