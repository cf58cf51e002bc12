//! The watch of a bus cycle.

use std::io;
use std::time::Duration;

use ethercat::time::Instant;
use timing::CycleRecord;

use super::{Detail, Disturbances, Subject, Watch, Window};
use crate::clock::{Clock, MonotonicClock};

/// Watches the thread of a [`crate::cycle::Cycle`], from the first record it is shown.
#[derive(Debug)]
pub struct CycleWatch {
    watch: Watch,
    window: Window,
    period: Duration,
    spin: Duration,
}

impl CycleWatch {
    /// Of thread `tid`, with this period and [spinning](crate::profile::Grants::spin_margin) so long; `expected` are the
    /// system calls that its link makes, such as [`crate::link::PacketLink::SYSTEM_CALLS`].
    ///
    /// # Errors
    /// What starting a thread fails with.
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
        Ok(Self { watch, window, period, spin })
    }

    /// Shows it a record: with the first, the watch begins at the next release, and knows the numbers of all. Show none
    /// before the beats that count, those in Op.
    pub fn see(&self, record: &CycleRecord) {
        if self.window.is_open() {
            return;
        }
        let period = u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX);
        let first = record.release_ns.saturating_sub(record.cycle.saturating_mul(period));
        // What was between the beat and this look is not watched: nobody knew yet that it counts.
        let from = MonotonicClock.now();
        self.window.open_from(from, Instant::from_nanos(first), self.period, self.spin);
    }

    /// The beats that count are over: to be called before the cycle is asked to stop.
    pub fn close(&self) {
        self.window.close(MonotonicClock.now());
    }

    /// What was found so far.
    #[must_use]
    pub fn read(&self) -> Option<Disturbances> {
        self.watch.read().pop()
    }
}
