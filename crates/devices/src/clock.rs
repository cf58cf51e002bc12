//! Current time of CLOCK_MONOTONIC.

use control::clock::{Clock, MonotonicClock};

/// Nanoseconds of CLOCK_MONOTONIC, the clock of all time stamps of this crate.
#[must_use]
pub(crate) fn now_ns() -> u64 {
    MonotonicClock.now().as_nanos()
}
