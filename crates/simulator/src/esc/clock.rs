//! Oscillator of one SubDevice: local time as a function of the simulation's time.

use ethercat::time::Instant;

/// A clock that counts nanoseconds at its own rate.
///
/// Kept as a straight line through the last change of rate, in units of 2^-40 ns, so that frequent
/// readings lose nothing by rounding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalClock {
    since: Instant,
    local: i128,
    rate: i128,
}

const FRACTION_BITS: u32 = 40;
const ONE: i128 = 1 << FRACTION_BITS;

impl LocalClock {
    /// A clock that shows `local` ns at `now`, and gains `rate` seconds per second (1e-6 is one
    /// ppm).
    pub(crate) fn new(now: Instant, local: u64, rate: f64) -> Self {
        Self { since: now, local: i128::from(local) << FRACTION_BITS, rate: fixed(rate) }
    }

    /// Nanoseconds at `now`. For times before the last change of rate, the count at that change.
    pub(crate) fn read(&self, now: Instant) -> u64 {
        (self.exact(now) >> FRACTION_BITS) as u64
    }

    /// Changes the rate from `now` on.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: f64) {
        self.local = self.exact(now) & ((1 << (64 + FRACTION_BITS)) - 1);
        self.since = self.since.max(now);
        self.rate = fixed(rate);
    }

    /// Jumps by `by` ns from now on.
    pub(crate) fn jump(&mut self, by: i64) {
        self.local += i128::from(by) << FRACTION_BITS;
    }

    /// First instant at which it shows `local`, wrapping at 2^64 ns; never before `now`.
    pub(crate) fn instant_of(&self, local: u64, now: Instant) -> Instant {
        let now = now.max(self.since);
        let remaining = local.wrapping_sub(self.read(now));
        let fraction = self.exact(now) & (ONE - 1);
        let distance = ((i128::from(remaining) << FRACTION_BITS) - fraction).max(0);
        let speed = ONE + self.rate;
        let elapsed = match (u64::try_from(distance), u64::try_from(speed)) {
            // Of some milliseconds: a far shorter division.
            (Ok(distance), Ok(speed)) => distance.div_ceil(speed),
            _ => u64::try_from((distance + speed - 1) / speed).unwrap_or(u64::MAX),
        };
        Instant::from_nanos(now.as_nanos().saturating_add(elapsed))
    }

    fn exact(&self, now: Instant) -> i128 {
        let elapsed = i128::from(now.as_nanos().saturating_sub(self.since.as_nanos()));
        self.local + elapsed * (ONE + self.rate)
    }
}

/// Fixed-point rate, limited to one part in a thousand, which no oscillator reaches.
fn fixed(rate: f64) -> i128 {
    let rate = if rate.is_nan() { 0.0 } else { rate.clamp(-2e-3, 2e-3) };
    (rate * ONE as f64).round() as i128
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_ppm_are_a_hundred_microseconds_a_second() {
        let mut clock = LocalClock::new(Instant::EPOCH, 500, 100e-6);
        let second = Instant::from_nanos(1_000_000_000);
        assert_eq!(clock.read(second), 1_000_100_500);
        clock.set_rate(second, 0.0);
        assert_eq!(clock.read(Instant::from_nanos(2_000_000_000)), 2_000_100_500);
    }

    #[test]
    fn changing_the_rate_often_loses_nothing() {
        let mut clock = LocalClock::new(Instant::EPOCH, 0, 33.3e-6);
        for millisecond in 0..100_000 {
            clock.set_rate(Instant::from_nanos(millisecond * 1_000_000), 33.3e-6);
        }
        let end = clock.read(Instant::from_nanos(100_000_000_000));
        assert!(end.abs_diff(100_003_330_000) <= 1, "{end}");
    }

    #[test]
    fn the_instant_of_a_reading_shows_that_reading() {
        for rate in [-100e-6, 0.0, 7.7e-6, 100e-6] {
            let clock = LocalClock::new(Instant::from_nanos(77), 1_000, rate);
            for local in [1_000, 1_001, 123_456, 987_654_321_012] {
                let instant = clock.instant_of(local, Instant::from_nanos(80).min(Instant::from_nanos(77)));
                assert_eq!(clock.read(instant), local);
                let before = Instant::from_nanos(instant.as_nanos() - 1);
                assert!(clock.read(before) < local || local == 1_000);
            }
        }
    }
}
