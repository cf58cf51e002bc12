//! Order statistics of measured durations.

/// Sorted durations in nanoseconds.
#[derive(Debug)]
pub(crate) struct Sorted(Vec<u64>);

impl Sorted {
    /// Sorts `durations`.
    pub(crate) fn new(mut durations: Vec<u64>) -> Self {
        durations.sort_unstable();
        Self(durations)
    }

    /// Number of durations.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Smallest duration not exceeded by at least `share` (0 to 1) of all (nearest rank); 0 without
    /// durations.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.clamp(1, self.0.len().max(1)) - 1).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let sorted = Sorted::new((1..=1000).rev().collect());
        assert_eq!(
            [0.0, 0.5, 0.99, 0.999, 1.0].map(|share| sorted.quantile(share)),
            [1, 500, 990, 999, 1000]
        );
        assert_eq!(Sorted::new(vec![]).quantile(0.5), 0);
    }
}
