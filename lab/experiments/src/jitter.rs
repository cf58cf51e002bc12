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
mod line;
mod moments;
mod moving_average;
mod numbering;

pub use envelope::{Envelope, Extremes};
pub use histogram::DeviationHistogram;
pub use line::{Line, LineFit};
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
mod tests;
