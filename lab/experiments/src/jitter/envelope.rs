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
}
