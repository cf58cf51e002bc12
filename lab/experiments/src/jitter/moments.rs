//! Mean, deviation and extremes of signed numbers, single and in pairs.

use serde::{Deserialize, Serialize};

/// Count, mean, standard deviation and extremes, in constant memory (Welford's recurrence).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
    minimum: f64,
    maximum: f64,
}

impl Moments {
    /// Adds a value.
    pub fn record(&mut self, value: f64) {
        if self.count == 0 {
            (self.minimum, self.maximum) = (value, value);
        }
        self.minimum = self.minimum.min(value);
        self.maximum = self.maximum.max(value);
        self.count += 1;
        let away = value - self.mean;
        self.mean += away / self.count as f64;
        self.squares += away * (value - self.mean);
    }

    /// Number of values.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean; 0 without values.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Smallest value; 0 without values.
    #[must_use]
    pub const fn minimum(&self) -> f64 {
        self.minimum
    }

    /// Largest value; 0 without values.
    #[must_use]
    pub const fn maximum(&self) -> f64 {
        self.maximum
    }

    /// Variance of the samples; 0 without values.
    #[must_use]
    pub fn variance(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.squares / self.count as f64 }
    }

    /// Standard deviation of the samples; 0 without values.
    #[must_use]
    pub fn standard_deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// Variances and covariance of pairs, in constant memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PairMoments {
    first: Moments,
    second: Moments,
    products: f64,
}

impl PairMoments {
    /// Adds a pair.
    pub fn record(&mut self, first: f64, second: f64) {
        let away = first - self.first.mean;
        self.first.record(first);
        self.second.record(second);
        self.products += away * (second - self.second.mean);
    }

    /// Number of pairs.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.first.count
    }

    /// Variance of the first values.
    #[must_use]
    pub fn first_variance(&self) -> f64 {
        self.first.variance()
    }

    /// Variance of the second values.
    #[must_use]
    pub fn second_variance(&self) -> f64 {
        self.second.variance()
    }

    /// Covariance of the samples; 0 without pairs.
    #[must_use]
    pub fn covariance(&self) -> f64 {
        if self.count() == 0 { 0.0 } else { self.products / self.count() as f64 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_numbers() {
        let mut moments = Moments::default();
        assert_eq!((moments.variance(), moments.maximum()), (0.0, 0.0));
        for value in [-3.0, -1.0, 1.0, 3.0] {
            moments.record(value);
        }
        assert_eq!((moments.mean(), moments.variance()), (0.0, 5.0));
        assert_eq!((moments.minimum(), moments.maximum(), moments.count()), (-3.0, 3.0, 4));
    }

    proptest! {
        #[test]
        fn pairs_agree_with_two_passes(pairs in prop::collection::vec((-1e6..1e6_f64, -1e6..1e6_f64), 1..500)) {
            let mut moments = PairMoments::default();
            pairs.iter().for_each(|&(first, second)| moments.record(first, second));
            let count = pairs.len() as f64;
            let mean_first = pairs.iter().map(|pair| pair.0).sum::<f64>() / count;
            let mean_second = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
            let covariance = pairs.iter().map(|(a, b)| (a - mean_first) * (b - mean_second)).sum::<f64>() / count;
            let variance = pairs.iter().map(|(a, _)| (a - mean_first).powi(2)).sum::<f64>() / count;
            prop_assert!((moments.covariance() - covariance).abs() <= 1e-9 * 1e12);
            prop_assert!((moments.first_variance() - variance).abs() <= 1e-9 * 1e12);
        }
    }
}
