//! Statistics of durations.

use hdrhistogram::Histogram;
use serde::{Serialize, Serializer};

/// Count, mean, standard deviation, extremes and percentiles of durations, in constant memory
/// (about a quarter of a mebibyte). Recording allocates nothing.
///
/// Mean, standard deviation (of the samples, divided by their count; Welford's recurrence) and
/// extremes are exact up to floating-point rounding. Percentiles come from a histogram of three
/// significant digits: off by at most 0.1 %, and values above [`Statistics::HIGHEST_DISTINGUISHED`]
/// share its last bucket.
#[derive(Clone, Debug)]
pub struct Statistics {
    histogram: Histogram<u64>,
    count: u64,
    mean: f64,
    squares: f64,
    minimum: u64,
    maximum: u64,
    maximum_cycle: u64,
}

impl Statistics {
    /// Largest value that percentiles resolve: 68.7 s in nanoseconds.
    pub const HIGHEST_DISTINGUISHED: u64 = 1 << 36;

    /// Statistics without samples.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, Self::HIGHEST_DISTINGUISHED, 3)
            .expect("1 to 2^36 at three digits are bounds hdrhistogram takes");
        Self {
            histogram,
            count: 0,
            mean: 0.0,
            squares: 0.0,
            minimum: u64::MAX,
            maximum: 0,
            maximum_cycle: 0,
        }
    }

    /// Adds a sample, in nanoseconds, of the cycle with this number.
    pub fn record(&mut self, value_ns: u64, cycle: u64) {
        self.histogram.saturating_record(value_ns);
        if self.count == 0 || value_ns > self.maximum {
            self.maximum = value_ns;
            self.maximum_cycle = cycle;
        }
        self.minimum = self.minimum.min(value_ns);
        self.count += 1;
        let value = value_ns as f64;
        let away = value - self.mean;
        self.mean += away / self.count as f64;
        self.squares += away * (value - self.mean);
    }

    /// Adds the samples of `other`, as if they had been recorded here, after these.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.histogram.add(&other.histogram).expect("all histograms here have the same bounds");
        if self.count == 0 || other.maximum > self.maximum {
            self.maximum = other.maximum;
            self.maximum_cycle = other.maximum_cycle;
        }
        self.minimum = self.minimum.min(other.minimum);
        let (ours, theirs) = (self.count as f64, other.count as f64);
        let away = other.mean - self.mean;
        self.count += other.count;
        self.mean += away * theirs / (ours + theirs);
        self.squares += other.squares + away * away * ours * theirs / (ours + theirs);
    }

    /// Number of samples.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Mean, ns.
    #[must_use]
    pub fn average(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Standard deviation of the samples, ns.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / self.count as f64).max(0.0).sqrt())
    }

    /// Smallest sample, ns.
    #[must_use]
    pub fn minimum(&self) -> Option<u64> {
        (self.count > 0).then_some(self.minimum)
    }

    /// Largest sample, ns.
    #[must_use]
    pub fn maximum(&self) -> Option<u64> {
        (self.count > 0).then_some(self.maximum)
    }

    /// First cycle with the largest sample.
    #[must_use]
    pub fn maximum_cycle(&self) -> Option<u64> {
        (self.count > 0).then_some(self.maximum_cycle)
    }

    /// Value that `quantile` (0 to 1) of the samples do not exceed, ns; at most 0.1 % too high.
    #[must_use]
    pub fn percentile(&self, quantile: f64) -> Option<u64> {
        let value = self.histogram.value_at_quantile(quantile);
        (self.count > 0).then(|| value.clamp(self.minimum, self.maximum))
    }

    /// The same, if at least one sample is beyond it. With fewer samples it would be the largest
    /// one.
    #[must_use]
    pub fn known_percentile(&self, quantile: f64) -> Option<u64> {
        let beyond = self.count as f64 * (1.0 - quantile);
        self.percentile(quantile).filter(|_| beyond >= 1.0 - 1e-9)
    }

    /// Number of samples up to each of `bounds`, ns, in rising order; a sample at most 0.1 % above
    /// a bound may count as at it.
    #[must_use]
    pub fn up_to<const N: usize>(&self, bounds: [u64; N]) -> [u64; N] {
        let mut counts = [0; N];
        for recorded in self.histogram.iter_recorded() {
            let value = self.histogram.lowest_equivalent(recorded.value_iterated_to());
            let of_value = recorded.count_since_last_iteration();
            let from = bounds.partition_point(|&bound| bound < value);
            counts[from..].iter_mut().for_each(|count| *count += of_value);
        }
        counts
    }

    /// Numbers to print or to serialise.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            count: self.count,
            average: self.average(),
            maximum: self.maximum(),
            maximum_cycle: self.maximum_cycle(),
            minimum: self.minimum(),
            standard_deviation: self.standard_deviation(),
            p50: self.percentile(0.5),
            p99: self.known_percentile(0.99),
            p99_9: self.known_percentile(0.999),
            p99_99: self.known_percentile(0.9999),
            p99_999: self.known_percentile(0.99999),
        }
    }
}

impl Default for Statistics {
    fn default() -> Self {
        Self::new()
    }
}

/// Serialises as its [`Summary`].
impl Serialize for Statistics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.summary().serialize(serializer)
    }
}

/// Numbers of a [`Statistics`], in nanoseconds; all but the count are `None` without samples, and
/// percentiles beyond the median with too few ([`Statistics::known_percentile`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// Mean.
    pub average: Option<f64>,
    /// Largest sample.
    pub maximum: Option<u64>,
    /// First cycle with the largest sample.
    pub maximum_cycle: Option<u64>,
    /// Smallest sample.
    pub minimum: Option<u64>,
    /// Standard deviation of the samples.
    pub standard_deviation: Option<f64>,
    /// The median.
    pub p50: Option<u64>,
    /// 99 %.
    pub p99: Option<u64>,
    /// 99.9 %.
    pub p99_9: Option<u64>,
    /// 99.99 %.
    pub p99_99: Option<u64>,
    /// 99.999 %.
    pub p99_999: Option<u64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Statistics {
        let mut statistics = Statistics::new();
        for (cycle, &value) in values.iter().enumerate() {
            statistics.record(value, cycle as u64);
        }
        statistics
    }

    /// Durations of every size that occurs: nanoseconds to minutes.
    fn any_values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0..36_u32).prop_flat_map(|bits| 0..=(1_u64 << bits));
        prop::collection::vec(value, 1..2000)
    }

    #[test]
    fn without_samples_there_are_no_numbers() {
        let summary = Statistics::new().summary();
        assert_eq!((summary.count, summary.average, summary.minimum, summary.p50), (0, None, None, None));
    }

    #[test]
    fn known_numbers() {
        let statistics = of(&[2, 4, 4, 4, 5, 5, 7, 9, 9]);
        assert_eq!(of(&[2, 4, 4, 4, 5, 5, 7, 9]).standard_deviation(), Some(2.0));
        assert_eq!(
            (statistics.maximum(), statistics.maximum_cycle()),
            (Some(9), Some(7)),
            "the first of equals"
        );
        assert_eq!((statistics.minimum(), statistics.percentile(0.5)), (Some(2), Some(5)));
    }

    #[test]
    fn values_beyond_the_histogram_keep_their_maximum() {
        let statistics = of(&[5, u64::MAX]);
        assert_eq!((statistics.maximum(), statistics.percentile(0.5)), (Some(u64::MAX), Some(5)));
    }

    #[test]
    fn values_up_to_a_bound_are_counted() {
        let statistics = of(&[0, 5, 10, 11, 2_000, 90_000_000_000]);
        assert_eq!(statistics.up_to([1, 10, 1_000, 2_000]), [1, 3, 4, 5]);
        assert_eq!(Statistics::new().up_to([1, 10]), [0, 0]);
    }

    #[test]
    fn a_large_offset_costs_the_standard_deviation_nothing() {
        let values: Vec<u64> = (0..10_000).map(|number| 1_000_000_000_000 + number % 2).collect();
        let deviation = of(&values).standard_deviation().unwrap();
        assert!((deviation - 0.5).abs() < 1e-3, "{deviation}");
    }

    #[test]
    fn json_names_what_the_tables_name() {
        let json = serde_json::to_value(of(&[10, 20])).unwrap();
        assert_eq!((json["average"].as_f64(), json["maximum"].as_u64()), (Some(15.0), Some(20)));
        assert_eq!((json["minimum"].as_u64(), json["standard_deviation"].as_f64()), (Some(10), Some(5.0)));
        assert_eq!((json["p50"].as_u64(), json["p99"].as_u64()), (Some(10), None), "two samples");
        let of_count = |count: u64| of(&(1..=count).collect::<Vec<_>>()).summary();
        assert_eq!((of_count(999).p99_9, of_count(1000).p99_9), (None, Some(999)));
    }

    proptest! {
        // feature(cycle): percentiles
        #[test]
        fn percentiles_agree_with_an_exact_sort(values in any_values()) {
            let statistics = of(&values);
            let mut sorted = values;
            sorted.sort_unstable();
            for quantile in [0.5, 0.99, 0.999, 0.9999, 0.99999] {
                let rank = (quantile * sorted.len() as f64).ceil() as usize;
                let exact = sorted[rank.max(1) - 1];
                let found = statistics.percentile(quantile).unwrap();
                prop_assert!(found >= exact && found - exact <= exact / 1000, "{quantile}: {found} for {exact}");
            }
            prop_assert_eq!(statistics.minimum(), sorted.first().copied());
            prop_assert_eq!(statistics.maximum(), sorted.last().copied());
        }

        #[test]
        fn mean_and_deviation_agree_with_two_passes(values in any_values()) {
            let statistics = of(&values);
            let count = values.len() as f64;
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / count;
            let squares: f64 = values.iter().map(|&value| (value as f64 - mean).powi(2)).sum();
            let close = |found: Option<f64>, want: f64| (found.unwrap() - want).abs() <= 1e-9 * want + 1e-6;
            prop_assert!(close(statistics.average(), mean));
            prop_assert!(close(statistics.standard_deviation(), (squares / count).sqrt()));
        }

        #[test]
        fn merging_is_recording_one_after_the_other(values in any_values(), at in 0..2000_usize) {
            let at = at.min(values.len());
            let whole = of(&values).summary();
            let mut first = of(&values[..at]);
            let mut second = Statistics::new();
            for (cycle, &value) in values.iter().enumerate().skip(at) {
                second.record(value, cycle as u64);
            }
            first.merge(&second);
            let merged = first.summary();
            let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() <= 1e-9 * a.unwrap() + 1e-6;
            prop_assert!(close(merged.average, whole.average));
            prop_assert!(close(merged.standard_deviation, whole.standard_deviation));
            let rest = |summary: Summary| Summary { average: None, standard_deviation: None, ..summary };
            prop_assert_eq!(rest(merged), rest(whole));
        }
    }
}
