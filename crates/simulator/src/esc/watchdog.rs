//! Watchdogs (ETG.1000.4, 6.8; ESC data sheet, section II, 2.10).
//!
//! Simplification: a change of divider or time takes effect at the next trigger.

use core::time::Duration;

use ethercat::time::Instant;

/// One watchdog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watchdog {
    deadline: Option<Instant>,
    forced: bool,
}

impl Watchdog {
    /// Triggers it at `now` for `period`; `None` switches it off.
    pub(crate) fn trigger(&mut self, now: Instant, period: Option<Duration>) {
        self.deadline = period.map(|period| now + period);
    }

    /// Makes it expire at the next check, triggered or not.
    pub(crate) fn expire(&mut self) {
        self.forced = true;
    }

    /// Time at which it expires, if it was triggered.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// True if it is to expire at the next check.
    pub(crate) fn is_forced(&self) -> bool {
        self.forced
    }

    /// Moves its deadline by the time of triggers that were left out.
    pub(crate) fn postpone(&mut self, by: Duration) {
        self.deadline = self.deadline.map(|deadline| deadline + by);
    }

    /// True once if it has expired by `now`, since it was last triggered.
    pub(crate) fn expires(&mut self, now: Instant) -> bool {
        let forced = core::mem::take(&mut self.forced);
        let expired = forced || self.deadline.is_some_and(|deadline| deadline <= now);
        if expired {
            self.deadline = None;
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_expires_once_and_only_after_it_was_fed() {
        let (mut watchdog, at) = (Watchdog::default(), Instant::from_nanos);
        assert!(!watchdog.expires(at(1_000)));
        watchdog.trigger(at(1_000), Some(Duration::from_nanos(100)));
        assert!(!watchdog.expires(at(1_099)));
        watchdog.trigger(at(1_099), Some(Duration::from_nanos(100)));
        assert!(!watchdog.expires(at(1_198)));
        assert!(watchdog.expires(at(1_199)));
        assert!(!watchdog.expires(at(1_300)));
    }
}
