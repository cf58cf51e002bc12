//! Limit of retries with a SubDevice that does not answer: a number of tries *and* a time.
//!
//! Tries alone would measure the machine, not the bus: with a short period they are used up while
//! this process, or a switch on the way, merely stalled. Time alone would give up after one try.

use core::time::Duration;

use crate::time::Instant;

/// Retry budget: failures in a row, and the time they take.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryBudget {
    /// Tries that may fail.
    pub(super) tries: u32,
    /// Time between the first failure noticed and the last.
    pub(super) time: Duration,
}

/// Failures in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RetryCounter {
    /// Count.
    pub(super) tries: u32,
    since: Option<Instant>,
    last: Instant,
}

impl RetryCounter {
    /// One more failure, noticed now.
    pub(super) fn count(&mut self, now: Instant) {
        self.tries = self.tries.saturating_add(1);
        self.since.get_or_insert(now);
        self.last = now;
    }

    /// From the first failure noticed to the last.
    pub(super) fn lasted(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| self.last.since(since))
    }

    /// Leaves out this time.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.since = self.since.map(|since| since + by);
        self.last = self.last + by;
    }

    /// True if there were too many for too long.
    pub(super) fn exhausts(&self, budget: RetryBudget) -> bool {
        self.tries > budget.tries && self.lasted() >= budget.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: RetryBudget = RetryBudget { tries: 50, time: Duration::from_secs(2) };

    fn failures(count: u32, apart: Duration) -> RetryCounter {
        let mut in_vain = RetryCounter::default();
        let mut now = Instant::from_nanos(77);
        for _ in 0..count {
            in_vain.count(now);
            now = now + apart;
        }
        in_vain
    }

    #[test]
    fn many_failures_in_a_short_time_are_tolerated() {
        let hiccup = failures(250, Duration::from_millis(1));
        assert_eq!((hiccup.tries, hiccup.lasted()), (250, Duration::from_millis(249)));
        assert!(!hiccup.exhausts(TIMEOUT));
    }

    #[test]
    fn few_failures_over_a_long_time_are_tolerated() {
        assert!(!failures(50, Duration::from_secs(1)).exhausts(TIMEOUT));
        assert!(!failures(1, Duration::from_secs(100)).exhausts(TIMEOUT));
        assert!(!RetryCounter::default().exhausts(TIMEOUT));
    }

    #[test]
    fn many_failures_over_a_long_time_are_not() {
        assert!(!failures(100, Duration::from_millis(20)).exhausts(TIMEOUT));
        assert!(failures(101, Duration::from_millis(20)).exhausts(TIMEOUT));
    }
}
