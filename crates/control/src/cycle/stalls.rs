//! Stalls of the host that a bus in this process does not see.

use std::time::Duration;

/// Cycles that began late because the host did not run them, on a bus that waited for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStalls {
    /// Cycles that began a period or more after they should have.
    pub count: u64,
    /// The longest such delay.
    pub longest: Duration,
    /// Cycles before which a watchdog of [`USUAL_WATCHDOG`] would have expired on a wire.
    pub beyond_watchdog: u64,
}

/// Process data watchdog of most drives, from the reset values of 0x0400 and 0x0420 (ETG.1000.4).
pub const USUAL_WATCHDOG: Duration = Duration::from_millis(100);

impl HostStalls {
    /// A cycle that began so long after the one before.
    pub(super) fn note(&mut self, since_last: Duration, period: Duration) {
        let late = since_last.saturating_sub(period);
        if late >= period {
            self.count += 1;
            self.longest = self.longest.max(late);
            self.beyond_watchdog += u64::from(since_last > USUAL_WATCHDOG);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_that_begin_late_are_counted_with_the_longest_delay() {
        let mut stalls = HostStalls::default();
        for microseconds in [1_000, 1_999, 2_000, 100_000, 100_001, 500] {
            stalls.note(Duration::from_micros(microseconds), Duration::from_millis(1));
        }
        let longest = Duration::from_micros(99_001);
        assert_eq!(stalls, HostStalls { count: 3, longest, beyond_watchdog: 1 });
    }
}
