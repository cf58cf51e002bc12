//! Straight line through points, in one pass.

use serde::{Deserialize, Serialize};

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
