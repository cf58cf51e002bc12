//! Median filter: a sonar sometimes receives an echo of the previous ping, or none.

/// Median of the last five distances. Infinity, for nothing within range, is a distance like any
/// other.
#[derive(Clone, Debug, Default)]
pub struct Median {
    last: [f64; WIDTH],
    count: usize,
    next: usize,
}

const WIDTH: usize = 5;

impl Median {
    /// Adds a distance, unless it is NaN; returns the median.
    pub fn push(&mut self, distance: f64) -> Option<f64> {
        if !distance.is_nan() {
            self.last[self.next] = distance;
            self.next = (self.next + 1) % WIDTH;
            self.count = (self.count + 1).min(WIDTH);
        }
        self.value()
    }

    /// Median; of an even number the smaller of the middle two. `None` without distances.
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        let mut sorted = self.last;
        let sorted = &mut sorted[..self.count];
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(self.count.saturating_sub(1) / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_wrong_ones_of_five_do_not_show() {
        let mut median = Median::default();
        assert_eq!(median.value(), None);
        assert_eq!(median.push(1.0), Some(1.0));
        assert_eq!(median.push(f64::INFINITY), Some(1.0));
        for distance in [1.01, 0.2, 1.02] {
            median.push(distance);
        }
        assert_eq!(median.value(), Some(1.01));
        assert_eq!(median.push(f64::NAN), Some(1.01));
        for _ in 0..3 {
            median.push(f64::INFINITY);
        }
        assert_eq!(median.value(), Some(f64::INFINITY));
    }
}
