//! The MainDevice's side of touch probes (IEC 61800-7-201, touch probe functionality): the drive
//! stores its position at the edges of an input, or at the index pulse of its encoder,
//! independently of the cycle.
//!
//! 0x60B8 arms, 0x60B9 shows the stored edges, and 0x60BA to 0x60BD hold the positions: of probe 1
//! at the rising and the falling edge, then of probe 2. The low byte of the two words belongs to
//! probe 1, the high one to probe 2.

/// Event that a probe waits for: the first of each edge after it was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeTrigger {
    /// Source of the edges.
    pub source: ProbeSource,
    /// Store the position at the rising edge.
    pub rising: bool,
    /// Store the position at the falling edge.
    pub falling: bool,
}

/// Source of a probe's edges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeSource {
    /// The probe's input.
    #[default]
    Input,
    /// The index pulse of the encoder.
    IndexPulse,
}

impl ProbeTrigger {
    /// Rising edge of the probe's input.
    pub const RISING: Self = Self { source: ProbeSource::Input, rising: true, falling: false };
    /// Falling edge of the probe's input.
    pub const FALLING: Self = Self { source: ProbeSource::Input, rising: false, falling: true };

    /// Byte of 0x60B8: armed for one event.
    const fn function(self) -> u8 {
        const ENABLE: u8 = 1 << 0;
        let source = match self.source {
            ProbeSource::Input => 0,
            ProbeSource::IndexPulse => 1 << 2,
        };
        ENABLE | source | (self.rising as u8) << 4 | (self.falling as u8) << 5
    }
}

/// State of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeProgress {
    /// Waits for nothing.
    #[default]
    Idle,
    /// The drive has not shown yet that it waits.
    Arming,
    /// The drive waits for the edges.
    Armed,
    /// All requested edges are stored.
    Stored,
}

/// One touch probe of a drive: called once a cycle in which its inputs came, no I/O, no allocation.
///
/// A status may be of an earlier arming. So a probe is disarmed until the drive shows that, and
/// only then armed. An edge counts once, in the cycle that shows it first ([`TouchProbe::fresh`]).
///
/// ```
/// use onbeat_ethercat::cia402::{ProbeProgress, ProbeTrigger, TouchProbe};
///
/// let mut probe = TouchProbe::default();
/// probe.arm(ProbeTrigger::RISING);
/// assert_eq!(probe.step(0b011, [7, 0]), 0, "an edge of before: taken back");
/// assert_eq!(probe.step(0, [7, 0]), 0x11, "armed");
/// probe.step(0b001, [7, 0]);
/// assert_eq!(probe.progress(), ProbeProgress::Armed);
/// probe.step(0b011, [1_234, 0]);
/// assert_eq!(probe.fresh(), [Some(1_234), None]);
/// assert_eq!(probe.progress(), ProbeProgress::Stored);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TouchProbe {
    trigger: Option<ProbeTrigger>,
    stage: ProbeStage,
    /// Positions at the rising and the falling edge since it was armed.
    stored: [Option<i32>; 2],
    fresh: [Option<i32>; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ProbeStage {
    /// The function is 0, until the drive shows the probe off.
    #[default]
    Off,
    /// The function is written, and the drive does not show the probe on yet.
    Arming,
    On,
}

impl TouchProbe {
    /// Arms the probe for an event; earlier edges are forgotten.
    pub fn arm(&mut self, trigger: ProbeTrigger) {
        *self = Self { trigger: Some(trigger), ..Self::default() };
    }

    /// Takes it back; positions stored are kept.
    pub fn disarm(&mut self) {
        *self = Self { stored: self.stored, ..Self::default() };
    }

    /// One cycle: its byte of 0x60B9, and its positions at the rising and the falling edge, in
    /// counts. Returns its byte for 0x60B8.
    pub fn step(&mut self, status: u8, positions: [i32; 2]) -> u8 {
        self.fresh = [None; 2];
        let on = status & ENABLED != 0;
        let Some(trigger) = self.trigger else { return 0 };
        self.stage = match self.stage {
            ProbeStage::Off if on => ProbeStage::Off,
            ProbeStage::Off | ProbeStage::Arming if !on => ProbeStage::Arming,
            _ => ProbeStage::On,
        };
        if self.stage == ProbeStage::On {
            for edge in 0..2 {
                let wanted = [trigger.rising, trigger.falling][edge];
                let is_stored = status & STORED[edge] != 0;
                if wanted && is_stored && self.stored[edge].is_none() {
                    self.stored[edge] = Some(positions[edge]);
                    self.fresh[edge] = self.stored[edge];
                }
            }
        }
        if self.stage == ProbeStage::Off { 0 } else { trigger.function() }
    }

    /// Positions at the rising and the falling edge that came with the last [`step`](Self::step),
    /// in counts.
    #[must_use]
    pub const fn fresh(&self) -> [Option<i32>; 2] {
        self.fresh
    }

    /// Positions at the rising and the falling edge since it was armed, in counts.
    #[must_use]
    pub const fn stored(&self) -> [Option<i32>; 2] {
        self.stored
    }

    /// State of it.
    #[must_use]
    pub fn progress(&self) -> ProbeProgress {
        let Some(trigger) = self.trigger else { return ProbeProgress::Idle };
        let waits = |edge: usize| [trigger.rising, trigger.falling][edge] && self.stored[edge].is_none();
        match self.stage {
            ProbeStage::Off | ProbeStage::Arming => ProbeProgress::Arming,
            ProbeStage::On if waits(0) || waits(1) => ProbeProgress::Armed,
            ProbeStage::On => ProbeProgress::Stored,
        }
    }
}

/// Bits of a probe's byte of 0x60B9: it is on; a position is stored at the rising, the falling
/// edge.
const ENABLED: u8 = 1 << 0;
const STORED: [u8; 2] = [1 << 1, 1 << 2];

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: ProbeTrigger = ProbeTrigger { source: ProbeSource::Input, rising: true, falling: true };

    // feature(cia402): touch probes: armed again after an earlier edge was cleared, each edge once
    #[test]
    fn probe_edge_counts_once_for_its_arming() {
        let mut probe = TouchProbe::default();
        assert_eq!((probe.step(0b111, [1, 2]), probe.fresh()), (0, [None; 2]), "nobody asked");
        probe.arm(BOTH);
        for _ in 0..3 {
            assert_eq!((probe.step(0b111, [1, 2]), probe.fresh()), (0, [None; 2]), "of before");
        }
        assert_eq!(probe.step(0, [1, 2]), 0x31);
        assert_eq!((probe.step(0, [1, 2]), probe.progress()), (0x31, ProbeProgress::Arming));
        assert_eq!((probe.step(0b001, [1, 2]), probe.progress()), (0x31, ProbeProgress::Armed));
        probe.step(0b101, [1, -5]);
        assert_eq!((probe.fresh(), probe.progress()), ([None, Some(-5)], ProbeProgress::Armed));
        probe.step(0b101, [1, -5]);
        assert_eq!((probe.fresh(), probe.stored()), ([None; 2], [None, Some(-5)]));
        probe.step(0b111, [9, -5]);
        assert_eq!((probe.fresh(), probe.progress()), ([Some(9), None], ProbeProgress::Stored));
        probe.disarm();
        assert_eq!((probe.step(0b111, [9, -5]), probe.progress()), (0, ProbeProgress::Idle));
        assert_eq!(probe.stored(), [Some(9), Some(-5)]);
    }

    #[test]
    fn only_requested_edges_are_armed_and_counted() {
        for (trigger, function, stored) in [
            (ProbeTrigger::RISING, 0x11, [Some(1), None]),
            (ProbeTrigger::FALLING, 0x21, [None, Some(2)]),
            (
                ProbeTrigger { source: ProbeSource::IndexPulse, ..ProbeTrigger::RISING },
                0x15,
                [Some(1), None],
            ),
        ] {
            let mut probe = TouchProbe::default();
            probe.arm(trigger);
            assert_eq!(probe.step(0, [1, 2]), function);
            // A drive may be on, and have stored, within one cycle.
            probe.step(0b111, [1, 2]);
            assert_eq!((probe.stored(), probe.progress()), (stored, ProbeProgress::Stored));
        }
    }
}
