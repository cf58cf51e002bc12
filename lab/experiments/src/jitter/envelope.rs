//! Series of any length for a plot, in constant memory: the extremes of each stretch.

use serde::{Deserialize, Serialize};

/// Largest number of stretches; beyond it, neighbours are merged.
const STRETCHES: usize = 2_000;

/// The extremes of one stretch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extremes {
    /// Number of the first cycle in it.
    pub cycle: u64,
    /// Smallest value.
    pub minimum: f64,
    /// Largest value.
    pub maximum: f64,
}

/// Smallest and largest value of every stretch of a series, of any length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    stretches: Vec<Extremes>,
    /// Samples in a whole stretch.
    length: u64,
    /// Samples in the last one.
    filled: u64,
}

impl Default for Envelope {
    fn default() -> Self {
        Self { stretches: Vec::with_capacity(STRETCHES), length: 1, filled: 1 }
    }
}

impl Envelope {
    /// Adds the next sample.
    pub fn record(&mut self, cycle: u64, value: f64) {
        if let Some(last) = self.stretches.last_mut().filter(|_| self.filled < self.length) {
            last.minimum = last.minimum.min(value);
            last.maximum = last.maximum.max(value);
            self.filled += 1;
            return;
        }
        if self.stretches.len() == STRETCHES {
            let join = |pair: &[Extremes]| Extremes {
                cycle: pair[0].cycle,
                minimum: pair.iter().fold(f64::INFINITY, |least, one| least.min(one.minimum)),
                maximum: pair.iter().fold(f64::NEG_INFINITY, |most, one| most.max(one.maximum)),
            };
            self.stretches = self.stretches.chunks(2).map(join).collect();
            self.length *= 2;
        }
        self.stretches.push(Extremes { cycle, minimum: value, maximum: value });
        self.filled = 1;
    }

    /// Stretches, in order.
    #[must_use]
    pub fn stretches(&self) -> &[Extremes] {
        &self.stretches
    }
}

/// `y = intercept + slope * x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// y at x = 0.
    pub intercept: f64,
    /// Change of y per x.
    pub slope: f64,
}

impl Line {
    /// y at `x`.
    #[must_use]
    pub fn at(self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// Least-squares fit, point by point, in constant memory.
///
/// Means and sums of squares about them are updated with each point (Welford's recurrence for two
/// variables), so that neither long series nor large offsets lose digits.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineFit {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    squares_x: f64,
    products: f64,
}

impl LineFit {
    /// Adds a point.
    pub fn record(&mut self, x: f64, y: f64) {
        self.count += 1;
        let count = self.count as f64;
        let away_x = x - self.mean_x;
        self.mean_x += away_x / count;
        self.mean_y += (y - self.mean_y) / count;
        self.squares_x += away_x * (x - self.mean_x);
        self.products += away_x * (y - self.mean_y);
    }

    /// Number of points.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Line with the least squares of vertical distances; `None` unless there are two different x.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        let slope = (self.squares_x > 0.0).then(|| self.products / self.squares_x)?;
        Some(Line { intercept: self.mean_y - slope * self.mean_x, slope })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_keeps_its_peaks_in_their_places() {
        let mut envelope = Envelope::default();
        for cycle in 0..1_000_003_u64 {
            envelope.record(cycle, if cycle == 700_001 { 50.0 } else { (cycle % 3) as f64 - 1.0 });
        }
        let stretches = envelope.stretches();
        assert!((STRETCHES / 2..=STRETCHES).contains(&stretches.len()), "{}", stretches.len());
        let peak = stretches.iter().rposition(|one| one.maximum == 50.0).unwrap();
        assert!(stretches[peak].cycle <= 700_001 && stretches[peak + 1].cycle > 700_001);
        assert_eq!(stretches.iter().filter(|one| one.maximum == 50.0).count(), 1);
        assert!(stretches.windows(2).all(|pair| pair[0].cycle < pair[1].cycle));
        assert!(stretches[..10].iter().all(|one| (one.minimum, one.maximum) == (-1.0, 1.0)));
    }

    #[test]
    fn a_short_series_is_itself() {
        let mut envelope = Envelope::default();
        (0..3_u32).for_each(|cycle| envelope.record(cycle.into(), f64::from(cycle)));
        let one =
            |cycle: u32| Extremes { cycle: cycle.into(), minimum: cycle.into(), maximum: cycle.into() };
        assert_eq!(envelope.stretches(), [one(0), one(1), one(2)]);
    }

    #[test]
    fn points_on_a_line_give_the_line() {
        let mut fit = LineFit::default();
        assert_eq!(fit.line(), None);
        fit.record(3.0, 1.0);
        assert_eq!(fit.line(), None, "one point is no line");
        for x in [4.0, 9.0, 17.0] {
            fit.record(x, -0.5 + 0.5 * x);
        }
        let line = fit.line().unwrap();
        assert!((line.slope - 0.5).abs() < 1e-12 && (line.at(100.0) - 49.5).abs() < 1e-10, "{line:?}");
    }

    #[test]
    fn a_day_of_cycles_far_from_the_origin_costs_no_digits() {
        let mut fit = LineFit::default();
        // Every thousandth cycle of a day at 1 kHz, with 20 ppm, alternately 5 us early and late.
        for number in 0..86_400_u32 {
            let x = f64::from(number) * 1000.0 + 1e9;
            let noise = if number % 2 == 0 { 5_000.0 } else { -5_000.0 };
            fit.record(x, 1e12 + 20.0 * x + noise);
        }
        let line = fit.line().unwrap();
        assert!((line.slope - 20.0).abs() < 1e-5, "{line:?}");
    }
}
