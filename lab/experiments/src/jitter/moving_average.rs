//! Moving average about each sample, subtracted from it.

use std::collections::VecDeque;

use super::Arrival;

/// A sample without its slow changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Detrended {
    pub(super) arrival: Arrival,
    pub(super) jitter_ns: f64,
}

/// Subtracts from each sample the mean of the `window` samples about it: as many before it as after
/// it, except at the ends of the series, where the window stops and keeps its length.
///
/// Holds one window. Sums are whole picoseconds, so that the last sample's is as exact as the
/// first's.
#[derive(Debug)]
pub(super) struct MovingAverage {
    window: usize,
    /// Newest samples, at most `window`, in ps.
    samples: VecDeque<(Arrival, i64)>,
    sum: i128,
    /// Number of them already returned, counted from the oldest.
    given: usize,
}

impl MovingAverage {
    pub(super) fn new(window: usize) -> Self {
        Self { window, samples: VecDeque::with_capacity(window), sum: 0, given: 0 }
    }

    /// Takes the next sample, and returns the samples with a now complete window.
    pub(super) fn push(&mut self, arrival: Arrival, value_ns: f64, mut give: impl FnMut(Detrended)) {
        if self.samples.len() == self.window {
            if let Some((_, oldest)) = self.samples.pop_front() {
                self.sum -= i128::from(oldest);
                self.given -= 1;
            }
        }
        // Saturates beyond a hundred days.
        let value = (value_ns * 1e3).round() as i64;
        self.samples.push_back((arrival, value));
        self.sum += i128::from(value);
        if self.samples.len() == self.window {
            self.give_up_to(self.window / 2, &mut give);
        }
    }

    /// Returns the rest.
    pub(super) fn finish(&mut self, mut give: impl FnMut(Detrended)) {
        if let Some(last) = self.samples.len().checked_sub(1) {
            self.give_up_to(last, &mut give);
        }
    }

    fn give_up_to(&mut self, place: usize, give: &mut impl FnMut(Detrended)) {
        let count = self.samples.len() as f64;
        while self.given <= place {
            let (arrival, value) = self.samples[self.given];
            // Mean of differences, not difference of means: no digits are lost to a common offset.
            let away = i128::from(value) * self.samples.len() as i128 - self.sum;
            give(Detrended { arrival, jitter_ns: away as f64 / count / 1e3 });
            self.given += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn detrended(window: usize, values: &[f64]) -> Vec<f64> {
        let mut average = MovingAverage::new(window);
        let mut all = Vec::new();
        for (cycle, &value) in values.iter().enumerate() {
            average.push(Arrival { cycle: cycle as u64, at_ns: 0 }, value, |one| all.push(one));
        }
        average.finish(|one| all.push(one));
        assert!(all.iter().enumerate().all(|(number, one)| one.arrival.cycle == number as u64));
        all.iter().map(|one| one.jitter_ns).collect()
    }

    #[test]
    fn a_short_series_loses_its_mean() {
        assert_eq!(detrended(10, &[1.0, 2.0, 6.0]), [-2.0, -1.0, 3.0]);
        assert_eq!(detrended(10, &[]), [0.0; 0]);
    }

    #[test]
    fn a_slope_is_nothing_but_at_the_ends() {
        let slope: Vec<f64> = (0..100).map(f64::from).collect();
        let found = detrended(5, &slope);
        assert!(found[2..98].iter().all(|&value| value == 0.0), "{found:?}");
        assert_eq!((found[0], found[99]), (-2.0, 2.0));
    }

    proptest! {
        #[test]
        fn each_sample_loses_the_mean_of_its_window(
            values in prop::collection::vec(-1_000_000..1_000_000_i32, 0..300),
            window in 2..60_usize,
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let length = window.min(values.len());
            for (place, found) in detrended(window, &values).into_iter().enumerate() {
                let start = place.saturating_sub(window / 2).min(values.len() - length);
                let mean = values[start..start + length].iter().sum::<f64>() / length as f64;
                prop_assert!((found - (values[place] - mean)).abs() < 1e-6, "{place}");
            }
        }
    }
}
