//! Lock of the cycle's releases to the reference clock of the bus (distributed clocks), by a
//! phase-locked loop.
//!
//! The reference clock's time comes back with every frame that passes it: its difference from this
//! host's clock when that frame was sent is filtered to an offset and a drift. Releases are then
//! moved, by no more than the [`SLEW`] a cycle, until they come at a fixed phase of the reference
//! clock's periods. Frames that were held up on their way are outliers: they say nothing of the
//! clocks.
//!
//! Pure: samples in, nanoseconds out.

use std::time::Duration;

use ethercat::time::Instant;
use serde::Serialize;
use types::LockState;

/// Releases are moved by one part in this many of the period a cycle at most.
pub const SLEW: i64 = 200;

/// One part in this many of the period is the largest phase error of a lock, but not less than
/// [`LEAST_ERROR`].
const LOCKED_WITHIN: i64 = 100;

/// Variation of the transit times of frames, ns.
const LEAST_ERROR: i64 = 2_000;

/// Consecutive cycles within the error that make a lock.
const TO_LOCK: u32 = 50;

/// Consecutive cycles beyond three times the error, or without a sample, that end it.
const TO_LOSE: u32 = 20;

/// One part in this many of the period is how far a sample may be off to count, but not less than
/// [`LEAST_GATE`].
const GATE: i64 = 20;

/// ns.
const LEAST_GATE: i64 = 20_000;

/// Consecutive outliers after which the clock itself has jumped.
const JUMPED: u32 = 20;

/// Share of a difference that goes into the offset, and into the drift.
const OFFSET_GAIN: f64 = 1.0 / 16.0;
const DRIFT_GAIN: f64 = OFFSET_GAIN * OFFSET_GAIN / 4.0;

/// Largest plausible drift of two crystals, as a part of the period.
const LARGEST_DRIFT: f64 = 500e-6;

/// Current state of the lock of the cycle to the reference clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LockReport {
    /// State of the lock.
    pub state: LockState,
    /// Release against its place in the reference clock's period; positive is late.
    pub phase_error_ns: i64,
    /// Rate of the reference clock against this host's, in parts per billion.
    pub drift_ppb: i64,
    /// Samples that did not count.
    pub outliers: u64,
    /// Times the lock was lost.
    pub losses: u64,
    /// Cycles that it took to be locked, the last time.
    pub cycles_to_lock: u64,
    /// Largest phase error since then, while locked.
    pub held_within_ns: u64,
}

/// Reference clock of the bus, by the newest frame that passed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferenceReport {
    /// True if a frame of the last cycle had its time; else the rest is of an earlier one.
    pub fresh: bool,
    /// Its time less this host's, both since 2000-01-01, when that frame was sent; the frame's way
    /// to it is part of it.
    pub difference_ns: i64,
    /// Time from the last multiple of the period in its time, at which SYNC0 without a shift comes,
    /// to the frame's passage.
    pub frame_phase_ns: u64,
}

impl ReferenceReport {
    /// Takes the measurement of a cycle's frame: the reference clock's time when it passed, and
    /// when it was sent, on a host that counts from `epoch` on.
    pub(crate) fn note(&mut self, sample: Option<(u64, Instant)>, epoch: u64, period_ns: u64) {
        self.fresh = sample.is_some();
        let Some((reference, sent)) = sample else { return };
        let host = sent.as_nanos().wrapping_add(epoch);
        self.difference_ns = reference.wrapping_sub(host) as i64;
        self.frame_phase_ns = reference % period_ns.max(1);
    }
}

/// The loop.
#[derive(Clone, Debug)]
pub struct ClockLock {
    period: i64,
    phase: i64,
    /// Reference clock less this host's, and its change a cycle.
    offset: f64,
    /// First difference of the clocks, from which `offset` counts: a double would not hold both.
    base: Option<i64>,
    drift: f64,
    outliers_in_a_row: u32,
    without_sample: u32,
    within: u32,
    beyond: u32,
    /// Cycles since it has been searched for.
    searched: u64,
    report: LockReport,
}

impl ClockLock {
    /// For releases `phase` behind each multiple of the period in the reference clock's time.
    #[must_use]
    pub fn new(period: Duration, phase: Duration) -> Self {
        let nanoseconds = |it: Duration| i64::try_from(it.as_nanos()).unwrap_or(i64::MAX);
        Self {
            period: nanoseconds(period).max(1),
            phase: nanoseconds(phase),
            offset: 0.0,
            base: None,
            drift: 0.0,
            outliers_in_a_row: 0,
            without_sample: 0,
            within: 0,
            beyond: 0,
            searched: 0,
            report: LockReport { state: LockState::Searching, ..LockReport::default() },
        }
    }

    /// Its current state.
    #[must_use]
    pub fn report(&self) -> LockReport {
        self.report
    }

    /// One cycle further, or `periods` if some were skipped. `sample`: the reference clock's time
    /// when a frame passed it, and when that frame was sent. Returns the ns by which the releases
    /// after `release` are to be moved.
    pub fn update(&mut self, sample: Option<(u64, Instant)>, release: Instant, periods: u64) -> i64 {
        self.offset += self.drift * periods as f64;
        self.searched = self.searched.saturating_add(periods);
        self.skip(periods.saturating_sub(1));
        match sample {
            Some((reference, sent)) => {
                let since_release = sent.as_nanos().wrapping_sub(release.as_nanos()) as i64;
                let lag = since_release as f64 / self.period as f64;
                self.take(reference.wrapping_sub(sent.as_nanos()) as i64, lag);
            }
            None => self.without_sample = self.without_sample.saturating_add(1),
        }
        let Some(base) = self.base else { return 0 };
        let error = self.error_of(base, release);
        self.judge(error);
        self.report.drift_ppb = (self.drift / self.period as f64 * 1e9) as i64;
        let slew = (self.period / SLEW).max(1);
        let moved = -(error as f64) / 4.0 - self.drift;
        (moved.round() as i64).clamp(-slew, slew)
    }

    /// Skipped cycles: the host stalled.
    fn skip(&mut self, cycles: u64) {
        let cycles = u32::try_from(cycles).unwrap_or(u32::MAX);
        self.without_sample = self.without_sample.saturating_add(cycles);
        if self.without_sample >= TO_LOSE {
            self.lose();
        }
    }

    /// Takes a difference of the clocks. `lag`: periods from the release to the measurement, far
    /// below 0 if the host has stalled since.
    fn take(&mut self, difference: i64, lag: f64) {
        let base = *self.base.get_or_insert(difference);
        let innovation = difference.wrapping_sub(base) as f64 - (self.offset + self.drift * lag);
        if innovation.abs() > (self.period / GATE).max(LEAST_GATE) as f64 {
            self.report.outliers += 1;
            self.outliers_in_a_row += 1;
            self.without_sample = self.without_sample.saturating_add(1);
            if self.outliers_in_a_row >= JUMPED {
                (self.base, self.offset, self.outliers_in_a_row) = (Some(difference), 0.0, 0);
                self.lose();
            }
            return;
        }
        (self.outliers_in_a_row, self.without_sample) = (0, 0);
        self.offset += innovation * OFFSET_GAIN;
        let largest = LARGEST_DRIFT * self.period as f64;
        self.drift = (self.drift + innovation * DRIFT_GAIN).clamp(-largest, largest);
    }

    /// Distance of a release from its place; positive is late.
    fn error_of(&self, base: i64, release: Instant) -> i64 {
        let shown = (release.as_nanos() as i64).wrapping_add(base).wrapping_add(self.offset.round() as i64);
        let error = shown.wrapping_sub(self.phase).rem_euclid(self.period);
        if error > self.period / 2 { error - self.period } else { error }
    }

    fn judge(&mut self, error: i64) {
        self.report.phase_error_ns = error;
        let largest = (self.period / LOCKED_WITHIN).max(LEAST_ERROR);
        let is_fresh = self.without_sample == 0;
        self.within = if error.abs() <= largest && is_fresh { self.within.saturating_add(1) } else { 0 };
        self.beyond = if error.abs() > 3 * largest { self.beyond.saturating_add(1) } else { 0 };
        if self.report.state != LockState::Locked && self.within >= TO_LOCK {
            self.report.state = LockState::Locked;
            (self.report.cycles_to_lock, self.report.held_within_ns) = (self.searched, 0);
        } else if self.beyond >= TO_LOSE || self.without_sample >= TO_LOSE {
            self.lose();
        }
        if self.report.state == LockState::Locked {
            self.report.held_within_ns = self.report.held_within_ns.max(error.unsigned_abs());
        }
    }

    fn lose(&mut self) {
        self.within = 0;
        if self.report.state == LockState::Locked {
            self.report.state = LockState::Lost;
            self.report.losses += 1;
            self.searched = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    /// A reference clock that runs `ppm` faster than the host's, and a cycle that follows it.
    struct Bench {
        lock: ClockLock,
        ppm: f64,
        ahead: f64,
        release: u64,
        random: u64,
    }

    impl Bench {
        fn new(ppm: f64, ahead: f64) -> Self {
            Self { lock: ClockLock::new(PERIOD, PERIOD / 2), ppm, ahead, release: 77_000_000, random: 1 }
        }

        fn shown(&self, at: u64) -> u64 {
            (at as f64 * (1.0 + self.ppm * 1e-6) + self.ahead) as u64 + 700_000_000_000_000_000
        }

        /// Up to 3 us on the way, now and then much more.
        fn jitter(&mut self) -> u64 {
            self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = self.random >> 33;
            if number % 50 == 0 { 200_000 } else { number % 3_000 }
        }

        fn cycle(&mut self, fresh: bool) {
            let sent = self.release + 20_000 + self.jitter() * 3;
            let passed = sent + 1_000 + self.jitter();
            let sample = fresh.then(|| (self.shown(passed), Instant::from_nanos(sent)));
            self.release(sample, 1);
        }

        fn release(&mut self, sample: Option<(u64, Instant)>, periods: u64) {
            let moved = self.lock.update(sample, Instant::from_nanos(self.release), periods);
            assert!(moved.unsigned_abs() <= 5_000, "{moved} ns in a cycle");
            self.release = (self.release as i64 + 1_000_000 + moved) as u64;
        }

        /// Stalls the host for so many cycles and skips their releases; the frame of the last cycle
        /// before has come back.
        fn stall(&mut self, cycles: u64) {
            let sent = self.release + 20_000;
            let sample = Some((self.shown(sent + 2_500), Instant::from_nanos(sent)));
            self.release += cycles * 1_000_000;
            self.release(sample, cycles + 1);
        }

        /// True distance of the release from its place.
        fn error(&self) -> i64 {
            let shown = self.shown(self.release) % 1_000_000;
            shown as i64 - 500_000
        }
    }

    proptest! {
        #[test]
        fn clocks_100_ppm_apart_lock_within_two_seconds(
            ppm in -100.0..100.0_f64,
            ahead in 0.0..1e6_f64,
        ) {
            let mut bench = Bench::new(ppm, ahead);
            (0..2_000).for_each(|_| bench.cycle(true));
            prop_assert_eq!(bench.lock.report().state, LockState::Locked, "{:?}", bench.lock);
            for _ in 0..5_000 {
                bench.cycle(true);
                prop_assert!(bench.error().abs() < 10_000, "{} ns", bench.error());
            }
            let drift = bench.lock.report().drift_ppb as f64 / 1e3;
            prop_assert!((drift - ppm).abs() < 5.0, "{drift} ppm, {ppm} in truth");
            prop_assert_eq!(bench.lock.report().losses, 0);
        }
    }

    #[test]
    fn a_silence_and_a_jump_lose_it_and_it_is_found_again() {
        let mut bench = Bench::new(50.0, 123_456.0);
        (0..2_000).for_each(|_| bench.cycle(true));
        (0..TO_LOSE + 1).for_each(|_| bench.cycle(false));
        assert_eq!(bench.lock.report().state, LockState::Lost);
        assert!(bench.error().abs() < 10_000, "it goes on by what it knows");
        (0..200).for_each(|_| bench.cycle(true));
        assert_eq!(bench.lock.report().state, LockState::Locked);
        bench.ahead += 300_000.0;
        (0..JUMPED + 40).for_each(|_| bench.cycle(true));
        assert_eq!(bench.lock.report().state, LockState::Lost);
        (0..2_000).for_each(|_| bench.cycle(true));
        let report = bench.lock.report();
        assert_eq!((report.state, report.losses), (LockState::Locked, 2));
        assert!(bench.error().abs() < 10_000, "{}", bench.error());
    }

    proptest! {
        /// Stalls of up to ten seconds, short ones that lose nothing included.
        #[test]
        fn stall_reports_a_lost_lock_and_it_is_regained(
            ppm in -100.0..100.0_f64,
            ahead in 0.0..1e6_f64,
            stalls in proptest::collection::vec((1..10_000_u64, 0..100_u32), 1..4),
        ) {
            let mut bench = Bench::new(ppm, ahead);
            (0..2_000).for_each(|_| bench.cycle(true));
            let mut lost = 0;
            for (cycles, apart) in stalls {
                bench.stall(cycles);
                let is_lost = cycles >= u64::from(TO_LOSE);
                lost += u64::from(is_lost);
                let expected = if is_lost { LockState::Lost } else { LockState::Locked };
                prop_assert_eq!(bench.lock.report().state, expected, "{} cycles", cycles);
                (0..2_000 + apart).for_each(|_| bench.cycle(true));
                let report = bench.lock.report();
                prop_assert_eq!((report.state, report.losses), (LockState::Locked, lost), "{:?}", report);
                prop_assert!(report.cycles_to_lock < 2_000 && report.held_within_ns < 30_000, "{:?}", report);
                prop_assert!(bench.error().abs() < 10_000, "{} ns", bench.error());
            }
        }
    }

    /// The frame that comes back behind a stall was sent before it: it has the clocks of then.
    #[test]
    fn a_stall_leaves_the_drift_as_it_is_known() {
        let mut bench = Bench::new(80.0, 0.0);
        (0..5_000).for_each(|_| bench.cycle(true));
        let before = bench.lock.report().drift_ppb;
        bench.stall(500);
        let after = bench.lock.report().drift_ppb;
        assert!(after.abs_diff(before) < 10_000, "{before} ppb, {after} behind it");
    }

    #[test]
    fn newest_frame_gives_difference_and_phase() {
        let mut report = ReferenceReport::default();
        report.note(Some((5_000_250_100, Instant::from_nanos(1_000_000_000))), 4_000_000_000, 1_000_000);
        assert_eq!(
            report,
            ReferenceReport { fresh: true, difference_ns: 250_100, frame_phase_ns: 250_100 }
        );
        report.note(None, 4_000_000_000, 1_000_000);
        assert_eq!(
            report,
            ReferenceReport { fresh: false, difference_ns: 250_100, frame_phase_ns: 250_100 }
        );
        report.note(Some((4_999_999_990, Instant::from_nanos(1_000_000_000))), 4_000_000_000, 1_000_000);
        assert_eq!((report.difference_ns, report.frame_phase_ns), (-10, 999_990));
    }

    #[test]
    fn without_samples_nothing_is_moved() {
        let mut lock = ClockLock::new(PERIOD, Duration::ZERO);
        assert_eq!(lock.update(None, Instant::from_nanos(5), 1), 0);
        assert_eq!(lock.report().state, LockState::Searching);
    }
}
