//! Watchdogs (ETG.1000.4, 6.8; ESC data sheet, section II, 2.10).
//!
//! Simplification: a change of divider or time holds from the next trigger on.

use core::time::Duration;

use ethercat::time::Instant;

/// One watchdog.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watchdog {
    deadline: Option<Instant>,
    forced: bool,
}

impl Watchdog {
    /// It was fed at `now` and runs for `period`; `None`: it is switched off.
    pub(crate) fn trigger(&mut self, now: Instant, period: Option<Duration>) {
        self.deadline = period.map(|period| now + period);
    }

    /// It expires when it is next looked at, fed or not.
    pub(crate) fn expire(&mut self) {
        self.forced = true;
    }

    /// Whether it has expired by `now`, since it was last fed; says so once.
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
