//! Statistics of the lowest per cents of samples, as in the humanoid paper's tables: a distribution
//! without its worst part.

use serde::Serialize;

/// A share of the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Samples kept of every 100 000.
    per_100_000: u32,
    /// In tables: `low 99.9 %`.
    pub name: &'static str,
    /// In JSON: `low_99_9`.
    pub key: &'static str,
}

impl Share {
    /// Shares of the paper's rows.
    pub const PAPER: [Self; 5] = [
        Self { per_100_000: 99_000, name: "low 99 %", key: "low_99" },
        Self { per_100_000: 99_900, name: "low 99.9 %", key: "low_99_9" },
        Self { per_100_000: 99_990, name: "low 99.99 %", key: "low_99_99" },
        Self { per_100_000: 99_999, name: "low 99.999 %", key: "low_99_999" },
        Self { per_100_000: 100_000, name: "100 %", key: "low_100" },
    ];

    /// Number of samples cut off.
    const fn cut(self, samples: usize) -> usize {
        // u128 holds the product for any number of samples.
        (samples as u128 * (100_000 - self.per_100_000) as u128 / 100_000) as usize
    }
}

/// Statistics of the lowest samples, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lowest {
    /// Number of samples.
    pub samples: usize,
    /// Largest of them.
    pub maximum: u64,
    /// Their mean.
    pub average: f64,
    /// Their standard deviation (divided by their count).
    pub standard_deviation: f64,
}

impl Lowest {
    /// Statistics of the lowest `share` of `sorted`, which rises. `None` without samples, and where
    /// they are too few for any to be cut off: the row would only repeat the one of all samples.
    #[must_use]
    pub fn of(sorted: &[u64], share: Share) -> Option<Self> {
        let cut = share.cut(sorted.len());
        if cut == 0 && share.per_100_000 < 100_000 {
            return None;
        }
        let kept = &sorted[..sorted.len() - cut];
        let &maximum = kept.last()?;
        let count = kept.len() as f64;
        let average = kept.iter().map(|&it| it as f64).sum::<f64>() / count;
        let squares: f64 = kept.iter().map(|&it| (it as f64 - average).powi(2)).sum();
        Some(Self { samples: kept.len(), maximum, average, standard_deviation: (squares / count).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P99: Share = Share::PAPER[0];
    const P99_9: Share = Share::PAPER[1];
    const P99_999: Share = Share::PAPER[3];
    const ALL: Share = Share::PAPER[4];

    #[test]
    fn against_numbers_computed_by_hand() {
        // 198 times 10, then 30 and 1000: the lowest 99 % of 200 are the 198.
        let mut samples = vec![10; 198];
        samples.extend([30, 1000]);
        let low = Lowest::of(&samples, P99).unwrap();
        assert_eq!((low.samples, low.maximum, low.average, low.standard_deviation), (198, 10, 10.0, 0.0));
        // All: mean (1980 + 30 + 1000) / 200 = 15.05; variance (198 * 5.05^2 + 14.95^2 + 984.95^2)
        // / 200.
        let all = Lowest::of(&samples, ALL).unwrap();
        assert_eq!((all.samples, all.maximum, all.average), (200, 1000, 15.05));
        assert!((all.standard_deviation - 4_876.997_5_f64.sqrt()).abs() < 1e-9, "{all:?}");
        assert_eq!(Lowest::of(&samples, P99_9), None, "0.1 % of 200 is no sample");

        // 1 to 1000: the lowest 99 % are 1 to 990, mean 495.5, variance (990^2 - 1) / 12.
        let samples: Vec<u64> = (1..=1000).collect();
        let low = Lowest::of(&samples, P99).unwrap();
        assert_eq!((low.samples, low.maximum, low.average), (990, 990, 495.5));
        assert!((low.standard_deviation - (980_099.0_f64 / 12.0).sqrt()).abs() < 1e-9);
        assert_eq!(Lowest::of(&samples, P99_9).unwrap().maximum, 999);
    }

    #[test]
    fn a_row_needs_as_many_samples_as_it_says() {
        let samples = vec![1; 99_999];
        assert_eq!(Lowest::of(&samples, P99_999), None);
        assert_eq!(Lowest::of(&vec![1; 100_000], P99_999).unwrap().samples, 99_999);
        assert_eq!(Lowest::of(&[], ALL), None);
        assert_eq!(Lowest::of(&[7], ALL).unwrap().maximum, 7);
    }
}
