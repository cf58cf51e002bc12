//! Period jitter of a bus, as seen by an observer that only timestamps passing frames.
//!
//! The definitions of the master-performance paper (EtherCAT MainDevice under Linux, with loads):
//!
//! * `a_i`, *arrival*: time at which the frame of cycle `i` arrived, by the observer's own clock.
//!   Cycles have numbers; one whose frame never arrived has no arrival and is counted as *missing*.
//! * `S_i = a_i - a_(i-1)`, *measured period*: only where both cycles have an arrival.
//! * *Regression*: `a_i = alpha + beta i` by least squares. `beta` is the mean period on the
//!   observer's clock; its difference from the nominal period is the difference of the two
//!   oscillators (and of any steering of either).
//! * *Moving average*: `m_i`, the mean of the regression's residuals over the 16 000 samples about
//!   `i`. It removes slower changes: oscillators that warm up, a clock that is being slewed. At
//!   both ends of the series the window stops at the end and keeps its length; a shorter series has
//!   one window, its whole.
//! * `J_i`, *period jitter*: the residual of cycle `i`, less `m_i`: distance of the frame from its
//!   place on an even grid, in both directions.
//! * *Identity*: `S_i` less the mean period is `J_i - J_(i-1)` (but for the change of `m` in one
//!   cycle), and so `var(J) = var(S) / 2 + cov(J_i, J_(i-1))`. Only where the covariance is zero
//!   does the jitter follow from the periods alone. [`Identity`] has both sides.
//!
//! Variances and standard deviations are of the samples (divided by their count). Everything but
//! [`jitter_of`]'s slice takes constant memory, for runs of any length.

mod envelope;
mod histogram;
mod moments;
mod moving_average;
mod numbering;

pub use envelope::{Envelope, Extremes, Line, LineFit};
pub use histogram::DeviationHistogram;
pub use moments::{Moments, PairMoments};
pub use numbering::{ByCounter, ByTime, Unnumbered};

use serde::{Deserialize, Serialize};

use moving_average::{Detrended, MovingAverage};

/// Samples of the moving average, as in the paper.
pub const WINDOW: usize = 16_000;

/// Arrival of the frame of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the cycle.
    pub cycle: u64,
    /// Time of arrival by the observer's clock, ns.
    pub at_ns: i64,
}

/// Result of an observer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BusJitter {
    /// Nominal period, ns.
    pub period_ns: u64,
    /// Number of arrivals.
    pub arrivals: u64,
    /// Cycles between the first and the last that have no arrival.
    pub missing: u64,
    /// First cycle after the longest run of missing ones, and the length of that run.
    pub longest_gap: Option<(u64, u64)>,
    /// Regression over the whole series; `None` for fewer than two arrivals.
    pub line: Option<Line>,
    /// Measured periods S, ns.
    pub periods: Moments,
    /// Deviations of S from the nominal period.
    pub period_histogram: DeviationHistogram,
    /// Period jitter J, ns.
    pub jitter: Moments,
    /// Histogram of J.
    pub jitter_histogram: DeviationHistogram,
    /// J over the cycles.
    pub trace: Envelope,
    /// Both sides of the covariance identity; `None` without two arrivals of consecutive cycles.
    pub identity: Option<Identity>,
    /// Covariance of the first part of the series: the short run of the paper's estimate.
    pub short: Option<Short>,
}

/// Covariance of the first part of a series: half of it at most, and about a million cycles at
/// most, as the paper's short runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Short {
    /// Pairs of consecutive cycles.
    pub pairs: u64,
    /// `cov(J_i, J_(i-1))`, ns².
    pub covariance: f64,
}

impl BusJitter {
    /// Mean period on the observer's clock, ns: the slope of the regression.
    #[must_use]
    pub fn mean_period_ns(&self) -> Option<f64> {
        self.line.map(|line| self.period_ns as f64 + line.slope)
    }

    /// Largest distance from the even grid, as a share of the period: the paper's relative jitter.
    #[must_use]
    pub fn relative_jitter(&self) -> Option<f64> {
        let worst = (self.jitter.count() > 0).then(|| self.jitter.maximum().max(-self.jitter.minimum()));
        worst.map(|worst| worst / self.period_ns as f64)
    }

    /// Standard deviation of J over the whole series, estimated as in the paper for long runs, ns:
    /// `sqrt(var(S) / 2 + cov)`, with the measured periods of the whole series and the covariance
    /// of a short run.
    #[must_use]
    pub fn estimated_deviation(&self) -> Option<f64> {
        let (identity, short) = self.identity.zip(self.short)?;
        Some((identity.half_period_variance + short.covariance).max(0.0).sqrt())
    }

    /// Relative difference of the mean period from the nominal one on the observer's clock, ppm;
    /// above 0 if it is longer.
    #[must_use]
    pub fn oscillator_difference_ppm(&self) -> Option<f64> {
        self.line.map(|line| line.slope / self.period_ns as f64 * 1e6)
    }
}

/// Both sides of `var(J) = var(S) / 2 + cov(J_i, J_(i-1))`, over all cycles with an arrival in the
/// cycle before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    /// `var(J)`, ns²: the mean of the variances of all `J_i` and of all `J_(i-1)`.
    pub jitter_variance: f64,
    /// `var(S) / 2`, ns².
    pub half_period_variance: f64,
    /// `cov(J_i, J_(i-1))`, ns².
    pub covariance: f64,
}

impl Identity {
    /// Right side, ns².
    #[must_use]
    pub fn right(&self) -> f64 {
        self.half_period_variance + self.covariance
    }

    /// Difference of the two sides, as a share of the larger of their terms; 0 where all are zero.
    #[must_use]
    pub fn relative_difference(&self) -> f64 {
        let size = self.jitter_variance.max(self.half_period_variance).max(self.covariance.abs());
        if size > 0.0 { (self.jitter_variance - self.right()).abs() / size } else { 0.0 }
    }

    /// Correlation `cov(J_i, J_(i-1)) / var(J)`: near 1 where lateness lasts over many cycles, near
    /// 0 where each cycle is late by itself, below 0 where a late cycle is followed by an early
    /// one.
    #[must_use]
    pub fn correlation(&self) -> Option<f64> {
        (self.jitter_variance > 0.0).then(|| self.covariance / self.jitter_variance)
    }
}

/// Evaluates arrivals as they come, in constant memory.
///
/// Residuals are taken from a line fitted to the first window of samples; the moving average
/// removes the difference from the line of the whole. The result differs from that of [`jitter_of`]
/// only at the very ends.
#[derive(Debug)]
pub struct BusObserver {
    period_ns: u64,
    window: usize,
    origin: Option<Arrival>,
    last: Option<Arrival>,
    missing: u64,
    longest_gap: Option<(u64, u64)>,
    fit: LineFit,
    /// Line that residuals are taken from, once it is known; until then arrivals wait.
    line: Option<Line>,
    waiting: Vec<Arrival>,
    average: MovingAverage,
    periods: Moments,
    period_histogram: DeviationHistogram,
    residue: Residue,
}

/// Statistics of J.
#[derive(Debug, Default)]
struct Residue {
    jitter: Moments,
    histogram: DeviationHistogram,
    trace: Envelope,
    pairs: PairMoments,
    /// S of the same pairs.
    pair_periods: Moments,
    /// Covariances at the last two powers of two pairs.
    short: [Option<Short>; 2],
    last: Option<Detrended>,
}

/// Pairs from which the covariance of the first part is no longer renewed: about a million.
const MOST_SHORT: u64 = 1 << 20;

impl BusObserver {
    /// An observer of a bus with this nominal period, ns, and a moving average over `window`
    /// samples ([`WINDOW`]; at least 2).
    #[must_use]
    pub fn new(period_ns: u64, window: usize) -> Self {
        let window = window.max(2);
        Self {
            period_ns,
            window,
            origin: None,
            last: None,
            missing: 0,
            longest_gap: None,
            fit: LineFit::default(),
            line: None,
            waiting: Vec::with_capacity(window),
            average: MovingAverage::new(window),
            periods: Moments::default(),
            period_histogram: DeviationHistogram::default(),
            residue: Residue::default(),
        }
    }

    /// Takes the next arrival. Returns `false`, without counting it, if its cycle is not after the
    /// previous one's.
    pub fn arrive(&mut self, arrival: Arrival) -> bool {
        if self.last.is_some_and(|last| arrival.cycle <= last.cycle) {
            return false;
        }
        if let Some(last) = self.last {
            let gap = arrival.cycle - last.cycle - 1;
            self.missing += gap;
            if gap > self.longest_gap.map_or(0, |(_, longest)| longest) {
                self.longest_gap = Some((arrival.cycle, gap));
            }
            if gap == 0 {
                let period = arrival.at_ns.saturating_sub(last.at_ns);
                self.periods.record(period as f64);
                self.period_histogram.record(period.saturating_sub_unsigned(self.period_ns));
            }
        }
        self.last = Some(arrival);
        let origin = *self.origin.get_or_insert(arrival);
        let (x, y) = self.place(origin, arrival);
        self.fit.record(x, y);
        match self.line {
            Some(line) => self.detrend(origin, line, arrival),
            None => {
                self.waiting.push(arrival);
                if self.waiting.len() >= self.window {
                    self.take_waiting(origin);
                }
            }
        }
        true
    }

    /// Nominal period, ns.
    #[must_use]
    pub const fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Deviations of the measured periods so far from the nominal one.
    #[must_use]
    pub const fn period_histogram(&self) -> &DeviationHistogram {
        &self.period_histogram
    }

    /// Result.
    #[must_use]
    pub fn finish(mut self) -> BusJitter {
        if let Some(origin) = self.origin {
            self.take_waiting(origin);
        }
        let residue = &mut self.residue;
        self.average.finish(|one| residue.record(one));
        let (identity, short) = (residue.identity(), residue.short());
        BusJitter {
            period_ns: self.period_ns,
            arrivals: self.fit.count(),
            missing: self.missing,
            longest_gap: self.longest_gap,
            line: self.fit.line(),
            periods: self.periods,
            period_histogram: self.period_histogram,
            jitter: self.residue.jitter,
            jitter_histogram: self.residue.histogram,
            identity,
            short,
            trace: self.residue.trace,
        }
    }

    /// Cycles since the first, and ns since the first less the nominal time of that many periods:
    /// small numbers, and exact ones.
    fn place(&self, origin: Arrival, arrival: Arrival) -> (f64, f64) {
        let cycles = arrival.cycle - origin.cycle;
        let nominal = i128::from(cycles) * i128::from(self.period_ns);
        let late = i128::from(arrival.at_ns) - i128::from(origin.at_ns) - nominal;
        (cycles as f64, late as f64)
    }

    fn take_waiting(&mut self, origin: Arrival) {
        let line = *self.line.get_or_insert_with(|| self.fit.line().unwrap_or_default());
        for arrival in std::mem::take(&mut self.waiting) {
            self.detrend(origin, line, arrival);
        }
    }

    fn detrend(&mut self, origin: Arrival, line: Line, arrival: Arrival) {
        let (x, y) = self.place(origin, arrival);
        let residue = &mut self.residue;
        self.average.push(arrival, y - line.at(x), |one| residue.record(one));
    }
}

impl Residue {
    fn record(&mut self, one: Detrended) {
        self.jitter.record(one.jitter_ns);
        self.histogram.record(one.jitter_ns.round() as i64);
        self.trace.record(one.arrival.cycle, one.jitter_ns);
        if let Some(last) = self.last.filter(|last| last.arrival.cycle + 1 == one.arrival.cycle) {
            self.pairs.record(one.jitter_ns, last.jitter_ns);
            self.pair_periods.record(one.arrival.at_ns.saturating_sub(last.arrival.at_ns) as f64);
            let pairs = self.pairs.count();
            if pairs.is_power_of_two() && pairs <= MOST_SHORT {
                self.short = [self.short[1], Some(Short { pairs, covariance: self.pairs.covariance() })];
            }
        }
        self.last = Some(one);
    }

    /// The later of the two covariances of at most half of the pairs.
    fn short(&self) -> Option<Short> {
        let half = self.pairs.count() / 2;
        self.short.into_iter().rev().flatten().find(|short| short.pairs <= half)
    }

    fn identity(&self) -> Option<Identity> {
        (self.pairs.count() > 0).then(|| Identity {
            jitter_variance: (self.pairs.first_variance() + self.pairs.second_variance()) / 2.0,
            half_period_variance: self.pair_periods.variance() / 2.0,
            covariance: self.pairs.covariance(),
        })
    }
}

/// Evaluates a whole series: the regression covers all of it before J is taken. Arrivals out of
/// order are left out.
#[must_use]
pub fn jitter_of(period_ns: u64, window: usize, arrivals: &[Arrival]) -> BusJitter {
    let mut observer = BusObserver::new(period_ns, window);
    if let Some(&origin) = arrivals.first() {
        let mut fit = LineFit::default();
        let mut last = None;
        for &arrival in arrivals {
            if last.is_none_or(|last| arrival.cycle > last) {
                last = Some(arrival.cycle);
                let (x, y) = observer.place(origin, arrival);
                fit.record(x, y);
            }
        }
        observer.line = fit.line();
    }
    for &arrival in arrivals {
        observer.arrive(arrival);
    }
    observer.finish()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PERIOD: u64 = 1_000_000;

    /// Reproducible pseudo-random numbers: SplitMix64.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut value = self.0;
            value = (value ^ value >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            value = (value ^ value >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            value ^ value >> 31
        }

        /// -1 to 1.
        fn signed(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        }
    }

    /// Arrivals with this drift and uniform jitter of this amplitude, with timestamps since 1970.
    fn series(count: u64, drift_ppm: f64, amplitude_ns: f64) -> Vec<Arrival> {
        let mut random = Random(7);
        let at = |cycle: u64, random: &mut Random| {
            let drift = cycle as f64 * PERIOD as f64 * drift_ppm * 1e-6;
            let away = drift + random.signed() * amplitude_ns;
            1_795_000_000_000_000_000 + (cycle * PERIOD) as i64 + away.round() as i64
        };
        (0..count).map(|cycle| Arrival { cycle: cycle + 5, at_ns: at(cycle, &mut random) }).collect()
    }

    fn close(found: f64, wanted: f64, tolerance: f64) -> bool {
        (found - wanted).abs() <= tolerance
    }

    // feature(measure): `measure interference`: relative jitter, the paper's estimate of the SD of long runs, square waves of the outputs
    // feature(measure): `measure interference`: independent observer, regression, moving average, covariance identity
    #[test]
    fn known_drift_and_jitter_come_out() {
        let arrivals = series(100_000, 37.5, 3_000.0);
        let found = jitter_of(PERIOD, WINDOW, &arrivals);
        assert!(close(found.oscillator_difference_ppm().unwrap(), 37.5, 1e-3), "{found:?}");
        assert!(close(found.mean_period_ns().unwrap(), 1_000_037.5, 1e-3));
        // Uniform of half-width a: standard deviation a / sqrt(3); S has two of them.
        let deviation = 3_000.0 / 3.0_f64.sqrt();
        assert!(close(found.jitter.standard_deviation(), deviation, 0.02 * deviation));
        assert!(close(found.periods.standard_deviation(), deviation * 2.0_f64.sqrt(), 0.02 * deviation));
        assert!(found.jitter.maximum() < 3_100.0 && found.jitter.minimum() > -3_100.0);
        assert_eq!((found.arrivals, found.missing, found.periods.count()), (100_000, 0, 99_999));
        let identity = found.identity.unwrap();
        assert!(identity.relative_difference() < 1e-3, "{identity:?}");
        assert!(identity.correlation().unwrap().abs() < 0.02, "each cycle is late by itself: {identity:?}");
        assert!(close(found.relative_jitter().unwrap(), 3_000.0 / PERIOD as f64, 1e-4));
        // The paper's way: the covariance is of the first 32 768 pairs, S of all.
        assert_eq!(found.short.unwrap().pairs, 1 << 15);
        assert!(close(found.estimated_deviation().unwrap(), deviation, 0.02 * deviation), "{found:?}");
    }

    #[test]
    fn jitter_that_lasts_does_not_show_in_the_periods() {
        // Slowly varying lateness: S hardly shows it, J does, and the covariance is the difference.
        let arrivals: Vec<_> = (0..200_000_u64)
            .map(|cycle| {
                let late = 20_000.0 * (cycle as f64 * 0.01).sin();
                Arrival { cycle, at_ns: (cycle * PERIOD) as i64 + late.round() as i64 }
            })
            .collect();
        let found = jitter_of(PERIOD, WINDOW, &arrivals);
        let identity = found.identity.unwrap();
        assert!(close(found.jitter.standard_deviation(), 20_000.0 / 2.0_f64.sqrt(), 300.0));
        assert!(found.periods.standard_deviation() < 200.0);
        assert!(
            identity.correlation().unwrap() > 0.99 && identity.relative_difference() < 1e-3,
            "{identity:?}"
        );
        // S alone would say 100 ns: the estimate has the covariance of the first part.
        assert!(close(found.estimated_deviation().unwrap(), 20_000.0 / 2.0_f64.sqrt(), 600.0), "{found:?}");
    }

    #[test]
    fn slow_drift_is_taken_away_by_the_moving_average() {
        // An oscillator that warms up: 3 ms in 200 s, as a parabola.
        let arrivals: Vec<_> = series(200_000, 0.0, 500.0)
            .into_iter()
            .map(|it| Arrival { at_ns: it.at_ns + ((it.cycle * it.cycle) as f64 * 7.5e-5) as i64, ..it })
            .collect();
        let found = jitter_of(PERIOD, WINDOW, &arrivals);
        let untouched = jitter_of(PERIOD, usize::MAX >> 40, &arrivals);
        assert!(untouched.jitter.standard_deviation() > 100_000.0);
        let inside = &found.trace.stretches()[200..1_300];
        assert!(inside.iter().all(|one| one.minimum > -3_000.0 && one.maximum < 3_000.0), "{inside:?}");
    }

    #[test]
    fn lost_frames_are_missing_cycles_and_spoil_no_period() {
        let mut arrivals = series(50_000, -12.0, 1_000.0);
        arrivals.retain(|it| it.cycle % 1_000 != 17 && !(20_000..20_030).contains(&it.cycle));
        let found = jitter_of(PERIOD, WINDOW, &arrivals);
        assert_eq!((found.missing, found.longest_gap), (49 + 30, Some((20_030, 30))));
        assert!(found.periods.maximum() < PERIOD as f64 + 2_100.0, "{:?}", found.periods);
        assert!(close(found.oscillator_difference_ppm().unwrap(), -12.0, 1e-3));
        assert!(found.jitter.maximum() < 1_100.0 && found.identity.unwrap().relative_difference() < 1e-3);
        // The same arrivals without their numbers.
        let mut numbering = ByTime::new(PERIOD);
        let mut by_time: Vec<_> = arrivals.iter().filter_map(|it| numbering.push(it.at_ns)).collect();
        by_time.extend(numbering.finish());
        let again = jitter_of(PERIOD, WINDOW, &by_time);
        assert_eq!((again.missing, again.jitter.maximum()), (found.missing, found.jitter.maximum()));
    }

    // feature(measure): long runs in constant memory
    #[test]
    fn a_day_takes_the_memory_of_a_minute() {
        // 24 h at 1 kHz, every 40th cycle, as a stream.
        let mut observer = BusObserver::new(PERIOD, WINDOW);
        let mut random = Random(3);
        for step in 0..2_160_000_u64 {
            let cycle = step * 40 + u64::from(step % 2 == 1);
            let drift = cycle as f64 * 20.0;
            let late = if step == 1_000_000 { 400_000.0 } else { random.signed() * 2_000.0 };
            let at_ns = (cycle * PERIOD) as i64 + (drift + late).round() as i64;
            observer.arrive(Arrival { cycle, at_ns });
        }
        let found = observer.finish();
        assert!(close(found.oscillator_difference_ppm().unwrap(), 20.0, 1e-4));
        assert!(close(found.jitter.maximum(), 400_000.0, 100.0), "{:?}", found.jitter);
        // The one late cycle has its weight in the mean of squares.
        let variance = 2_000.0_f64.powi(2) / 3.0 + 400_000.0_f64.powi(2) / 2_160_000.0;
        assert!(close(found.jitter.standard_deviation(), variance.sqrt(), 5.0), "{:?}", found.jitter);
        assert_eq!(found.arrivals, 2_160_000);
        assert!(found.trace.stretches().len() <= 2_000);
    }

    #[test]
    fn streaming_and_whole_agree_but_at_the_ends() {
        let arrivals = series(60_000, 25.0, 2_000.0);
        let whole = jitter_of(PERIOD, 1_000, &arrivals);
        let mut observer = BusObserver::new(PERIOD, 1_000);
        arrivals.iter().for_each(|&arrival| assert!(observer.arrive(arrival)));
        let stream = observer.finish();
        assert_eq!((stream.periods, stream.line), (whole.periods, whole.line));
        let (stream, whole) = (stream.jitter.standard_deviation(), whole.jitter.standard_deviation());
        assert!(close(stream, whole, 1e-3 * whole), "{stream} {whole}");
    }

    #[test]
    fn few_arrivals_are_no_error() {
        let none = jitter_of(PERIOD, WINDOW, &[]);
        assert_eq!((none.arrivals, none.line, none.identity), (0, None, None));
        let one = jitter_of(PERIOD, WINDOW, &series(1, 0.0, 0.0));
        assert_eq!((one.arrivals, one.jitter.count(), one.periods.count()), (1, 1, 0));
        let mut observer = BusObserver::new(PERIOD, WINDOW);
        assert!(observer.arrive(Arrival { cycle: 3, at_ns: 0 }));
        assert!(!observer.arrive(Arrival { cycle: 3, at_ns: 9 }), "the same cycle again");
        assert_eq!(observer.finish().arrivals, 1);
    }

    proptest! {
        /// With the regression alone (one window) the identity is exact for any arrivals.
        // feature(measure): `measure interference`: independent observer, regression, moving average, covariance identity
        #[test]
        fn the_identity_holds_for_any_series(
            steps in prop::collection::vec((1..4_u64, -2_000_000..2_000_000_i64), 2..400),
            period in 1_000..10_000_000_u64,
        ) {
            let mut cycle = 0;
            let arrivals: Vec<_> = steps
                .iter()
                .map(|&(step, late)| {
                    cycle += step;
                    Arrival { cycle, at_ns: (cycle * period) as i64 + late }
                })
                .collect();
            let found = jitter_of(period, WINDOW, &arrivals);
            if let Some(identity) = found.identity {
                prop_assert!(identity.relative_difference() < 1e-6, "{identity:?}");
            }
            prop_assert_eq!(found.jitter.count(), arrivals.len() as u64);
            prop_assert!(found.jitter.mean().abs() < 1e-2);
        }

        /// With the moving average the identity holds within the change of the average in a cycle.
        #[test]
        fn the_identity_holds_with_a_moving_average(
            lates in prop::collection::vec(-10_000..10_000_i64, 3_000..4_000),
        ) {
            let arrival = |(cycle, late): (usize, &i64)| Arrival {
                cycle: cycle as u64,
                at_ns: (cycle as u64 * PERIOD) as i64 + late,
            };
            let arrivals: Vec<_> = lates.iter().enumerate().map(arrival).collect();
            let identity = jitter_of(PERIOD, 1_000, &arrivals).identity.unwrap();
            prop_assert!(identity.relative_difference() < 5e-3, "{identity:?}");
        }
    }
}
