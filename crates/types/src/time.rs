//! Instants as the protocol sees them: handed in by the caller, never read from a clock.

use core::ops::{Add, Sub};
use core::time::Duration;

/// An instant in nanoseconds since an epoch of the caller's choosing.
///
/// The epoch must not change while a MainDevice lives. Arithmetic saturates: an instant never wraps.
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
