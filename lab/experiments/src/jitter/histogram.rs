//! Histogram of deviations of either sign, in constant memory.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Deviations from a nominal value, ns, each resolved to 0.1 %; the extremes exactly. Deviations of
/// more than 68.7 s count as 68.7 s. Takes about half a mebibyte.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "HistogramEntries", from = "HistogramEntries")]
pub struct DeviationHistogram {
    below: Histogram<u64>,
    above: Histogram<u64>,
    minimum: i64,
    maximum: i64,
}

impl Default for DeviationHistogram {
    fn default() -> Self {
        let new = || {
            Histogram::new_with_bounds(1, record::Statistics::HIGHEST_DISTINGUISHED, 3)
                .expect("1 to 2^36 at three digits are bounds hdrhistogram takes")
        };
        Self { below: new(), above: new(), minimum: i64::MAX, maximum: i64::MIN }
    }
}

/// Counts of a histogram, as they are kept in a file.
#[derive(Serialize, Deserialize)]
struct HistogramEntries {
    extremes: Option<(i64, i64)>,
    counts: Vec<(i64, u64)>,
}

impl From<DeviationHistogram> for HistogramEntries {
    fn from(histogram: DeviationHistogram) -> Self {
        Self { extremes: histogram.extremes(), counts: histogram.entries().collect() }
    }
}

impl From<HistogramEntries> for DeviationHistogram {
    fn from(entries: HistogramEntries) -> Self {
        let mut histogram = Self::default();
        for (deviation_ns, count) in entries.counts {
            let side = if deviation_ns < 0 { &mut histogram.below } else { &mut histogram.above };
            side.saturating_record_n(deviation_ns.unsigned_abs(), count);
        }
        (histogram.minimum, histogram.maximum) = entries.extremes.unwrap_or((i64::MAX, i64::MIN));
        histogram
    }
}

impl DeviationHistogram {
    /// Adds a deviation, ns.
    pub fn record(&mut self, deviation_ns: i64) {
        let side = if deviation_ns < 0 { &mut self.below } else { &mut self.above };
        side.saturating_record(deviation_ns.unsigned_abs());
        self.minimum = self.minimum.min(deviation_ns);
        self.maximum = self.maximum.max(deviation_ns);
    }

    /// Number of deviations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.below.len() + self.above.len()
    }

    /// Smallest and largest deviation, ns.
    #[must_use]
    pub fn extremes(&self) -> Option<(i64, i64)> {
        (self.count() > 0).then_some((self.minimum, self.maximum))
    }

    /// Magnitude that `share` (0 to 1) of the deviations do not exceed, ns; at most 0.1 % too high.
    #[must_use]
    pub fn size_at(&self, share: f64) -> Option<u64> {
        let (minimum, maximum) = self.extremes()?;
        let largest = minimum.unsigned_abs().max(maximum.unsigned_abs());
        Some(self.sizes().value_at_quantile(share).min(largest))
    }

    /// Magnitudes of all deviations.
    fn sizes(&self) -> Histogram<u64> {
        let mut sizes = self.below.clone();
        sizes.add(&self.above).expect("both sides have the same bounds");
        sizes
    }

    /// Counts of `bins` bins of equal width from `low_ns` to `high_ns`: lower edge of each, ns, and
    /// count. The outermost bins include the values beyond.
    #[must_use]
    pub fn bins(&self, (low_ns, high_ns): (f64, f64), bins: usize) -> Vec<(f64, u64)> {
        if self.count() == 0 || bins == 0 {
            return Vec::new();
        }
        let width = ((high_ns - low_ns) / bins as f64).max(1.0);
        let mut counts: Vec<(f64, u64)> = (0..bins).map(|bin| (low_ns + bin as f64 * width, 0)).collect();
        let mut add = |value: f64, count: u64| {
            let bin = ((value - low_ns) / width).max(0.0) as usize;
            counts[bin.min(bins - 1)].1 += count;
        };
        for (deviation_ns, count) in self.entries() {
            add(deviation_ns as f64, count);
        }
        counts
    }

    /// Deviations, to 0.1 %, and their counts, for each sign from the smallest magnitude to the
    /// largest.
    pub fn entries(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let side = |histogram: &Histogram<u64>, value: u64| {
            i64::try_from(histogram.median_equivalent(value)).unwrap_or(i64::MAX)
        };
        let below = self.below.iter_recorded();
        let below = below.map(move |it| (-side(&self.below, it.value_iterated_to()), it.count_at_value()));
        let above = self.above.iter_recorded();
        below.chain(above.map(move |it| (side(&self.above, it.value_iterated_to()), it.count_at_value())))
    }

    /// Share of deviations with a magnitude above each of `points` values, which are evenly spaced
    /// on a logarithmic scale from the magnitude that a tenth of them do not exceed to the largest:
    /// magnitude, ns, and share.
    #[must_use]
    pub fn tail(&self, points: usize) -> Vec<(f64, f64)> {
        let (Some((minimum, maximum)), Some(small)) = (self.extremes(), self.size_at(0.1)) else {
            return Vec::new();
        };
        let small = small.max(1) as f64;
        let decades = minimum.unsigned_abs().max(maximum.unsigned_abs()) as f64 / small;
        let (count, sizes) = (self.count(), self.sizes());
        let share = |size: f64| {
            (count - sizes.count_between(0, size.round() as u64).min(count)) as f64 / count as f64
        };
        let last = points.max(2) - 1;
        let size = |point: usize| small * decades.max(1.0).powf(point as f64 / last as f64);
        let mut tail: Vec<(f64, f64)> = (0..points).map(size).map(|size| (size, share(size))).collect();
        tail.retain(|&(_, share)| share > 0.0);
        tail
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(deviations: impl IntoIterator<Item = i64>) -> DeviationHistogram {
        let mut histogram = DeviationHistogram::default();
        deviations.into_iter().for_each(|deviation| histogram.record(deviation));
        histogram
    }

    #[test]
    fn nothing_has_no_numbers() {
        let histogram = of([]);
        assert_eq!((histogram.extremes(), histogram.size_at(0.5)), (None, None));
        assert!(histogram.bins((-5.0, 5.0), 10).is_empty() && histogram.tail(10).is_empty());
    }

    #[test]
    fn bins_hold_every_deviation_and_outliers_fall_in_the_outermost() {
        let histogram = of((-1000..1000).flat_map(|value| [value; 10]).chain([90_000_000]));
        let bins = histogram.bins((-500.0, 5_000.0), 55);
        assert_eq!(bins.iter().map(|bin| bin.1).sum::<u64>(), 20_001);
        assert_eq!((bins[0], bins[54]), ((-500.0, 6_000), (4_900.0, 1)));
        assert_eq!(bins[5], (0.0, 1_000));
        assert_eq!(histogram.extremes(), Some((-1000, 90_000_000)));
    }

    #[test]
    fn the_tail_falls_from_all_to_one() {
        let tail = of((1..=1000).map(|value| if value % 2 == 0 { value } else { -value })).tail(50);
        assert!(tail.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1), "{tail:?}");
        assert!((tail[0].1 - 0.9).abs() < 0.01 && tail[tail.len() - 1].1 < 0.1, "{tail:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn sizes_agree_with_an_exact_sort(
            deviations in prop::collection::vec((-34..34_i32, 0..1_000_000_000_i64), 1..500),
        ) {
            let one = |(bits, value): (i32, i64)| (value % (1 << bits.abs())) * i64::from(bits.signum());
            let deviations: Vec<i64> = deviations.into_iter().map(one).collect();
            let histogram = of(deviations.iter().copied());
            let mut sizes: Vec<u64> = deviations.iter().map(|value| value.unsigned_abs()).collect();
            sizes.sort_unstable();
            for share in [0.1, 0.5, 0.99, 1.0] {
                let exact = sizes[((share * sizes.len() as f64).ceil() as usize).max(1) - 1];
                let found = histogram.size_at(share).unwrap();
                prop_assert!(found.abs_diff(exact) <= exact / 500 + 1, "{share}: {found} for {exact}");
            }
            prop_assert_eq!(histogram.bins((-1e6, 2e6), 37).iter().map(|bin| bin.1).sum::<u64>(), deviations.len() as u64);
        }
    }
}
