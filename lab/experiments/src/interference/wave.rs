//! Square waves of the outputs that count the cycles. Output n has a period of 2^(n + 1) cycles: a
//! train of pulses with rising edges that a terminal stamps.

use serde::{Deserialize, Serialize};

use crate::jitter::{BusJitter, BusObserver, ByCounter, WINDOW};

/// Rising edges of one output.
#[derive(Debug, Serialize, Deserialize)]
pub struct Wave {
    /// Number of the output, the first of which changes with every cycle.
    pub output: u32,
    /// Edges: each is a cycle of this period.
    pub edges: BusJitter,
}

/// Number of outputs with evaluated edges.
const OUTPUTS: u32 = 4;

/// Waves while a recording is read.
pub(super) struct Waves {
    outputs: Vec<Output>,
    over: bool,
}

struct Output {
    number: u32,
    was_high: Option<bool>,
    numbering: ByCounter,
    observer: BusObserver,
}

impl Waves {
    /// Of a counter of so many bits: the last one is no wave, for its edges could not be numbered.
    pub(super) fn new(period_ns: u64, bits: u32) -> Self {
        let output = |number: u32| {
            let period_ns = period_ns << (number + 1);
            Output {
                number,
                was_high: None,
                numbering: ByCounter::new(period_ns, 1 << (bits - number - 1)),
                observer: BusObserver::new(period_ns, WINDOW),
            }
        };
        let outputs = (0..OUTPUTS.min(bits.saturating_sub(1))).map(output).collect();
        Self { outputs, over: false }
    }

    /// Takes the outputs of a frame.
    pub(super) fn see(&mut self, counter: u64, at_ns: i64) {
        if self.over {
            return;
        }
        for output in &mut self.outputs {
            let is_high = counter >> output.number & 1 == 1;
            // A wave begins with its first rise.
            if output.was_high.replace(is_high) == Some(false) && is_high {
                if let Ok(arrival) = output.numbering.number(counter >> (output.number + 1), at_ns) {
                    output.observer.arrive(arrival);
                }
            }
        }
    }

    /// Nothing more is looked at.
    pub(super) fn end(&mut self) {
        self.over = true;
    }

    pub(super) fn finish(self) -> Vec<Wave> {
        let waves = self.outputs.into_iter();
        waves.map(|it| Wave { output: it.number, edges: it.observer.finish() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rising_edges_of_an_output_are_a_series_with_its_period() {
        let mut waves = Waves::new(1_000, 16);
        // 70 000 cycles: the counter wraps. Each eighth frame is 40 ns late, one is missing.
        for cycle in 0..70_000_i64 {
            if cycle != 33_333 {
                let late = if cycle % 8 == 4 { 40 } else { 0 };
                waves.see(cycle as u64 % (1 << 16), cycle * 1_000 + late);
            }
        }
        let waves = waves.finish();
        assert_eq!(waves.len(), 4);
        for (wave, edges) in waves.iter().zip([34_999, 17_500, 8_750, 4_375]) {
            let it = &wave.edges;
            assert_eq!((it.period_ns, it.arrivals), (2_000 << wave.output, edges), "{}", wave.output);
            assert!(it.periods.mean() - it.period_ns as f64 <= 1.0, "{}", wave.output);
        }
        // Output 0 rises in odd cycles, one of which is missing; output 2 in the late ones, all
        // alike.
        assert!(waves[0].edges.missing == 1 && waves[2].edges.jitter.standard_deviation() < 1.0);
        assert!(Waves::new(1_000, 0).finish().is_empty());
    }
}
