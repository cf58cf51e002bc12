//! The clock of a cycle: the machine's own, or a virtual one for tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use types::Instant;

use crate::sys;

pub use crate::sys::clock::{RELEASE_MARK, realtime_nanos};
pub use crate::sys::timespec;

/// Reads the time and sleeps until a time.
pub trait Clock {
    /// Now.
    fn now(&self) -> Instant;

    /// Returns at `instant` or later, at once if it has passed.
    fn sleep_until(&self, instant: Instant);

    /// The same, for a [`crate::pacer`]'s wait: the one sleep that a real-time thread is expected
    /// to make.
    fn sleep_until_release(&self, instant: Instant) {
        self.sleep_until(instant);
    }

    /// Returns at `instant` or later without releasing the CPU: later by the time it takes to read
    /// the clock.
    fn spin_until(&self, instant: Instant) {
        while self.now() < instant {
            std::hint::spin_loop();
        }
    }
}

/// `CLOCK_MONOTONIC`: the epoch is the machine's start.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        sys::clock::monotonic()
    }

    fn sleep_until(&self, instant: Instant) {
        sys::clock::sleep_until(instant);
    }

    fn sleep_until_release(&self, instant: Instant) {
        sys::clock::sleep_until_release(instant);
    }
}

impl MonotonicClock {
    /// Time of distributed clocks at [`Instant::EPOCH`] of this clock, in ns since 2000-01-01 00:00
    /// UTC, by the machine's `CLOCK_REALTIME` of now; wrapping. 0 while that has not been set.
    #[must_use]
    pub fn system_time_at_epoch() -> u64 {
        let (realtime, monotonic) = (realtime_nanos(), sys::clock::monotonic().as_nanos());
        match realtime.checked_sub(YEAR_2000) {
            Some(system_time) => system_time.wrapping_sub(monotonic),
            None => 0,
        }
    }
}

/// Nanoseconds of `CLOCK_MONOTONIC`: the time stamps of cycles, tasks and devices.
#[must_use]
pub fn now_ns() -> u64 {
    MonotonicClock.now().as_nanos()
}

/// 2000-01-01 00:00 UTC in ns since 1970-01-01.
const YEAR_2000: u64 = 946_684_800_000_000_000;

/// A clock that moves only when set or slept on: whole cycles run in no time at all.
///
/// Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    nanoseconds: Arc<AtomicU64>,
}

impl VirtualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn at(now: Instant) -> Self {
        Self { nanoseconds: Arc::new(AtomicU64::new(now.as_nanos())) }
    }

    /// Advances the time by `duration`.
    pub fn advance(&self, duration: Duration) {
        let duration = types::time::nanoseconds(duration);
        // Relaxed: the time itself is all that is shared.
        self.nanoseconds.fetch_add(duration, Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.nanoseconds.load(Ordering::Relaxed))
    }

    fn sleep_until(&self, instant: Instant) {
        self.nanoseconds.fetch_max(instant.as_nanos(), Ordering::Relaxed);
    }

    fn spin_until(&self, instant: Instant) {
        self.sleep_until(instant);
    }
}

/// The clock of a bus: the machine's own, or one that the cycle advances.
#[derive(Clone, Debug, Default)]
pub enum BusClock {
    /// `CLOCK_MONOTONIC`, for SubDevices on a wire.
    #[default]
    Host,
    /// Bus time of SubDevices in this process: it moves with the cycle, and no stall of the host
    /// moves it.
    Simulated(VirtualClock),
}

impl Clock for BusClock {
    fn now(&self) -> Instant {
        match self {
            Self::Host => MonotonicClock.now(),
            Self::Simulated(clock) => clock.now(),
        }
    }

    fn sleep_until(&self, instant: Instant) {
        match self {
            Self::Host => MonotonicClock.sleep_until(instant),
            Self::Simulated(clock) => clock.sleep_until(instant),
        }
    }

    fn sleep_until_release(&self, instant: Instant) {
        match self {
            Self::Host => MonotonicClock.sleep_until_release(instant),
            Self::Simulated(clock) => clock.sleep_until_release(instant),
        }
    }

    fn spin_until(&self, instant: Instant) {
        match self {
            Self::Host => MonotonicClock.spin_until(instant),
            Self::Simulated(clock) => clock.spin_until(instant),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// The machine's own clock is read before and after, for any value of it.
    #[test]
    fn system_time_is_the_realtime_clocks_since_2000() {
        let realtime =
            || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_nanos());
        let before = realtime();
        let at_epoch = MonotonicClock::system_time_at_epoch();
        let shown = at_epoch.wrapping_add(MonotonicClock.now().as_nanos());
        let after = realtime();
        // 30 years, of which 7 were leap years.
        let since_1970 = u128::from(shown) + (30 * 365 + 7) * 86_400 * 1_000_000_000;
        // Both clocks are slewed alike; reading one after the other takes its time.
        assert!(
            before <= since_1970 + 1_000_000 && since_1970 <= after + 1_000_000,
            "{before} {since_1970} {after}"
        );
    }
}
