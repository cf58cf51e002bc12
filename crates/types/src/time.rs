//! Instants as the protocol sees them: handed in by the caller, never read from a clock.

use alloc::format;
use alloc::string::String;
use core::ops::{Add, Sub};
use core::time::Duration;

/// An instant in nanoseconds since an epoch of the caller's choosing.
///
/// The epoch must not change while a MainDevice lives. Arithmetic saturates: an instant never
/// wraps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    nanoseconds: u64,
}

impl Instant {
    /// The epoch itself.
    pub const EPOCH: Self = Self { nanoseconds: 0 };

    /// The instant `nanoseconds` after the epoch.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self { nanoseconds }
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.nanoseconds
    }

    /// The time from `earlier` to `self`; zero if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanoseconds.saturating_sub(earlier.nanoseconds))
    }
}

/// A duration in whole nanoseconds; the longest there are, some 585 years, for a longer one.
#[must_use]
pub fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Duration of something, at readable precision.
#[must_use]
pub fn span(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1e-3 => format!("{:.0} us", seconds * 1e6),
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds => format!("{seconds:.1} s"),
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self::from_nanos(self.nanoseconds.saturating_add(nanoseconds(duration)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

/// Last, smallest, largest and mean value of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Value of the last cycle.
    pub last_ns: u64,
    /// Smallest value.
    pub minimum_ns: u64,
    /// Largest value.
    pub maximum_ns: u64,
    /// Mean value.
    pub mean_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times below a millisecond are in microseconds, below a second in milliseconds, others in
    /// seconds.
    #[test]
    fn a_span_is_as_exact_as_people_want_to_know() {
        let spans = [250_000, 1_500_000, 61_040_000_000, 9_000_018_816];
        let words = spans.map(|nanoseconds| span(Duration::from_nanos(nanoseconds)));
        assert_eq!(words, ["250 us", "2 ms", "61.0 s", "9.0 s"]);
    }
}
