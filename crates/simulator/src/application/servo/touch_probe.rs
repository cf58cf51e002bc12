//! Touch probes (IEC 61800-7-201, touch probe functionality): positions stored at the edges of an
//! input, or at the index pulse.
//!
//! The low byte of 0x60B8 belongs to probe 1, the high byte to probe 2; 0x60B9 reports their state
//! in the same layout. The source 0x60D0 is not simulated.

use super::homing::index_pulse;

/// Bits of a probe in its byte of 0x60B8.
const ENABLE: u8 = 1 << 0;
const CONTINUOUS: u8 = 1 << 1;
const INDEX_PULSE: u8 = 1 << 2;
const SOURCE: u8 = 0b1100;
const POSITIVE_EDGE: u8 = 1 << 4;
const NEGATIVE_EDGE: u8 = 1 << 5;

/// Bits of a probe in its byte of 0x60B9.
const ENABLED: u8 = 1 << 0;
const POSITIVE_STORED: u8 = 1 << 1;
const NEGATIVE_STORED: u8 = 1 << 2;

/// One probe.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TouchProbe {
    /// Angles of the shaft, in rad, between which its input is high.
    input: Option<(f64, f64)>,
    function: u8,
    status: u8,
    /// Angles at the positive and the negative edge, in rad.
    stored: [Option<f64>; 2],
}

impl TouchProbe {
    pub(super) fn new(input: Option<(f64, f64)>) -> Self {
        Self { input, ..Self::default() }
    }

    /// True if the input of a shaft at this angle is high.
    pub(super) fn input(&self, position: f64) -> bool {
        self.input.is_some_and(|(first, last)| (first..=last).contains(&position))
    }

    /// True if it was not enabled when it was stepped last, and holds nothing.
    pub(super) fn is_off(&self) -> bool {
        self.function & ENABLE == 0 && self.status == 0 && self.stored == [None; 2]
    }

    /// Its byte of 0x60B9.
    pub(super) fn status(&self) -> u8 {
        self.status
    }

    /// Angles stored since the last call, at the positive and at the negative edge.
    pub(super) fn take_stored(&mut self) -> [Option<f64>; 2] {
        core::mem::take(&mut self.stored)
    }

    /// Watches a shaft that has turned from `before` to `now` (rad), as its byte of 0x60B8 says.
    pub(super) fn step(&mut self, function: u8, before: f64, now: f64) {
        if function & ENABLE == 0 {
            (self.function, self.status) = (function, 0);
            return;
        }
        let armed = function & ENABLE & !self.function;
        self.function = function;
        if armed != 0 {
            self.status = ENABLED;
        }
        let [rise, fall] = self.edges(function & SOURCE, before, now);
        self.store(0, POSITIVE_EDGE, POSITIVE_STORED, rise);
        self.store(1, NEGATIVE_EDGE, NEGATIVE_STORED, fall);
    }

    fn store(&mut self, edge: usize, wanted: u8, stored: u8, angle: Option<f64>) {
        let waits = self.function & CONTINUOUS != 0 || self.status & stored == 0;
        if let Some(angle) = angle.filter(|_| waits && self.function & wanted != 0) {
            self.stored[edge] = Some(angle);
            self.status |= stored;
        }
    }

    /// Angles at which the source rose and fell on the way.
    fn edges(&self, source: u8, before: f64, now: f64) -> [Option<f64>; 2] {
        if source == INDEX_PULSE {
            // A pulse without width: both of its edges are at its angle.
            return [index_pulse(before, now, now - before); 2];
        }
        let (Some((first, last)), 0) = (self.input, source) else { return [None; 2] };
        let (entered_at, left_at) = if now > before { (first, last) } else { (last, first) };
        match (self.input(before), self.input(now)) {
            (false, true) => [Some(entered_at), None],
            (true, false) => [None, Some(left_at)],
            // A touch shorter than a control period.
            (false, false) if before < first && now > last || before > last && now < first => {
                [Some(entered_at), Some(left_at)]
            }
            _ => [None; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use core::f64::consts::TAU;

    use super::*;

    const BOTH: u8 = ENABLE | POSITIVE_EDGE | NEGATIVE_EDGE;

    #[test]
    fn first_event_is_kept_until_probe_is_enabled_again() {
        let mut probe = TouchProbe::new(Some((1.0, 2.0)));
        probe.step(0, 0.0, 1.5);
        assert_eq!((probe.status(), probe.take_stored()), (0, [None; 2]));
        probe.step(BOTH, 0.9, 1.1);
        assert_eq!((probe.status(), probe.take_stored()), (0b011, [Some(1.0), None]));
        probe.step(BOTH, 1.1, 2.1);
        assert_eq!((probe.status(), probe.take_stored()), (0b111, [None, Some(2.0)]));
        probe.step(BOTH, 2.1, 1.9);
        assert_eq!((probe.status(), probe.take_stored()), (0b111, [None; 2]));
        probe.step(0, 1.9, 1.9);
        assert_eq!(probe.status(), 0);
        probe.step(BOTH, 2.1, 1.9);
        assert_eq!((probe.status(), probe.take_stored()), (0b011, [Some(2.0), None]));
    }

    #[test]
    fn continuous_probes_store_every_event_of_enabled_edges() {
        let mut probe = TouchProbe::new(Some((1.0, 2.0)));
        for (before, edge) in [(0.5, 1.0), (3.5, 2.0)] {
            probe.step(ENABLE | CONTINUOUS | POSITIVE_EDGE, before, 1.5);
            assert_eq!((probe.status(), probe.take_stored()), (0b011, [Some(edge), None]));
        }
        probe.step(ENABLE | CONTINUOUS | POSITIVE_EDGE, 1.5, 0.5);
        assert_eq!(probe.take_stored(), [None; 2]);
    }

    #[test]
    fn index_pulse_is_a_source_and_other_sources_trigger_nothing() {
        let mut probe = TouchProbe::new(Some((1.0, 2.0)));
        probe.step(BOTH | INDEX_PULSE, 0.0, 1.5);
        assert_eq!(probe.take_stored(), [None; 2]);
        probe.step(BOTH | INDEX_PULSE, 6.0, 6.5);
        assert_eq!(probe.take_stored(), [Some(TAU); 2]);
        let mut probe = TouchProbe::new(Some((1.0, 2.0)));
        probe.step(BOTH | 0b1000, 0.0, 1.5);
        assert_eq!((probe.status(), probe.take_stored()), (0b001, [None; 2]));
        let mut short = TouchProbe::new(Some((1.0, 1.001)));
        short.step(BOTH, 1.1, 0.9);
        assert_eq!(short.take_stored(), [Some(1.001), Some(1.0)]);
    }
}
