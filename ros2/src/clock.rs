//! Two clocks: CLOCK_MONOTONIC of the cycle, and the wall clock of ROS.

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::messages::basic::Time;

/// Current time, CLOCK_MONOTONIC.
pub(crate) fn monotonic_ns() -> u64 {
    to_ns(clock_gettime(ClockId::Monotonic)).max(0) as u64
}

/// Difference of the two clocks. It changes when the wall clock is set, so each use reads it again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WallClock {
    offset_ns: i64,
}

impl WallClock {
    /// Reads both clocks.
    pub(crate) fn now() -> Self {
        // Wall clock between two readings of the monotonic one: their middle is wrong by half their
        // distance at most.
        let before = to_ns(clock_gettime(ClockId::Monotonic));
        let wall = to_ns(clock_gettime(ClockId::Realtime));
        let after = to_ns(clock_gettime(ClockId::Monotonic));
        Self { offset_ns: wall - (before + (after - before) / 2) }
    }

    /// Time of the wall clock at an instant of the monotonic one.
    pub(crate) fn stamp(self, monotonic_ns: u64) -> Time {
        let ns = i64::try_from(monotonic_ns).unwrap_or(i64::MAX).saturating_add(self.offset_ns);
        Time::from_ns(ns)
    }

    /// Instant at which the wall clock shows `stamp`; `None` before the machine was started.
    pub(crate) fn instant(self, stamp: Time) -> Option<u64> {
        u64::try_from(stamp.to_ns().saturating_sub(self.offset_ns)).ok()
    }
}

fn to_ns(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_goes_to_the_wall_and_back() {
        let clock = WallClock::now();
        let now = monotonic_ns();
        assert_eq!(clock.instant(clock.stamp(now)), Some(now));
        assert_eq!(clock.instant(Time::from_ns(0)), None, "1970 was before this machine was started");
        assert!(clock.stamp(now).sec > 1_700_000_000, "the wall clock is set");
    }
}
