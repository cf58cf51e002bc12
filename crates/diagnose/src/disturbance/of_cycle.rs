//! The watch of a bus cycle, and of the tasks that run next to it.

use std::io;
use std::time::Duration;

use record::CycleRecord;
use rt::clock::{Clock, MonotonicClock};
use types::Instant;
use types::time::nanoseconds;

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
