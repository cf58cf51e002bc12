//! Oversampling terminals, as an EL3702 and an EL4732: two channels, each with as many samples in a
//! cycle as fit into its SyncManager. SYNC0 takes or drives a sample, SYNC1 transfers a block of
//! them. The system time of the next block is read from the ESC's own register.
//!
//! Identity, PDOs and limits are taken from public configurations and descriptions of the two
//! terminals (vendor's documentation of EL37x2 and EL47x2; 1 to 100 samples, object step 0x10).
//! Simplifications: addresses of the SyncManagers are our own; the cycle counter of outputs is not
//! compared; a block has the samples since the last SYNC1, missing samples are 0; no filter, no
//! noise.

use std::array;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoMapping};
use ethercat::register::dc;
use ethercat::time::Instant;

use super::description::DescriptionError;
use super::fixed_pdo;
use super::sii::entry;
use super::{
    Application, Level, ProcessDataLengths, SYNC_MANAGERS, Signal, StateChange, Sync0Event, Synchronisation,
};
use crate::coe::DataType;

/// Channels of each.
pub const CHANNELS: usize = 2;

/// Samples of a channel in one cycle at most.
pub const MOST_SAMPLES: usize = 100;

/// Shortest time from one sample to the next, in ns.
pub const SHORTEST_SAMPLE: u32 = 10_000;

/// SyncManagers of the two channels, with space for three buffers of the longest block.
pub(super) const BLOCKS: [u16; CHANNELS] = [0x1000, 0x1400];

/// The next SYNC1 in the ESC.
pub(super) const NEXT_BLOCK: u16 = dc::NEXT_SYNC1;

/// PDOs that hold a sample of an EL3702, and of an EL4732.
pub(super) const INPUT_SAMPLES: [u16; CHANNELS] = [MAPPING_INPUTS, MAPPING_INPUTS + 0x80];
pub(super) const OUTPUT_SAMPLES: [u16; CHANNELS] = [MAPPING_OUTPUTS, MAPPING_OUTPUTS + 0x100];

/// Counters of the blocks, likewise.
const INPUT_COUNTERS: [u16; CHANNELS] = [MAPPING_INPUTS + 0x100, MAPPING_INPUTS + 0x101];
const OUTPUT_COUNTERS: [u16; CHANNELS] = [MAPPING_OUTPUTS + 0x80, MAPPING_OUTPUTS + 0x180];

/// Object of the ESC's registers: sub-indices are their low bytes.
const REGISTERS: u16 = 0x1D09;

/// Bytes of a counter, and of a sample.
const WORD: usize = 2;

/// Type 3 of 0x1C32 and 0x1C33: by SYNC1.
const BY_SYNC1: u16 = 3;

/// Analogue inputs, as of an EL3702.
#[derive(Clone, Debug)]
pub struct OversamplingInputs {
    signals: [Signal; CHANNELS],
    /// Samples in a block of each channel; 0 for a disabled channel.
    counts: [usize; CHANNELS],
    /// Samples since the last SYNC1.
    taken: Box<[[i16; CHANNELS]; MOST_SAMPLES]>,
    number: usize,
    /// The newest one, and its system time.
    newest: Option<(u64, [i16; CHANNELS])>,
    /// Number of the block transferred last, 0 for none; `None` before the first SYNC1, because the
    /// block before it has no beginning.
    blocks: Option<u16>,
}

impl OversamplingInputs {
    /// A terminal that measures `signals`, in digits: 0x7FFF is full scale.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for a signal that is not finite.
    pub fn new(signals: [Signal; CHANNELS]) -> Result<Self, DescriptionError> {
        signals.iter().try_for_each(Signal::check)?;
        Ok(Self {
            signals,
            counts: [1; CHANNELS],
            taken: Box::new([[0; CHANNELS]; MOST_SAMPLES]),
            number: 0,
            newest: None,
            blocks: None,
        })
    }
}

impl Application for OversamplingInputs {
    fn arrange(&mut self, sync_managers: &[usize; SYNC_MANAGERS]) {
        self.counts = counts(sync_managers);
    }

    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: bytes(self.counts) }
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        Some(Synchronisation { kinds: [0, BY_SYNC1], minimum_cycle: SHORTEST_SAMPLE, ..Default::default() })
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        if change.from == AlState::PreOp {
            (self.number, self.newest, self.blocks) = (0, None, None);
        }
        Ok(())
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn sync0(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        let sample = self.signals.each_ref().map(|signal| signal.at(event.now).round() as i16);
        if let Some(place) = self.taken.get_mut(self.number) {
            *place = sample;
        }
        self.number += 1;
        self.newest = Some((event.system_time, sample));
    }

    fn sync1(&mut self, event: Sync0Event, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        // The SYNC0 together with SYNC1 takes the first sample of the next block.
        let first = self.newest.take().filter(|(time, _)| *time == event.system_time);
        let begun = usize::from(first.is_some());
        let whole = self.number.saturating_sub(begun).min(MOST_SAMPLES);
        let number = self.blocks.map_or(0, |blocks| blocks.wrapping_add(1));
        if self.blocks.replace(number).is_some() {
            let mut rest = inputs;
            for (channel, count) in self.counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
                let Some((own, behind)) = rest.split_at_mut_checked(WORD * (1 + count)) else { return };
                rest = behind;
                own[..WORD].copy_from_slice(&number.to_le_bytes());
                for (place, sample) in own[WORD..].chunks_exact_mut(WORD).enumerate() {
                    let value = if place < whole { self.taken[place][channel] } else { 0 };
                    sample.copy_from_slice(&value.to_le_bytes());
                }
            }
        }
        if let Some((_, first)) = first {
            self.taken[0] = first;
        }
        self.number = begun;
    }
}

/// Analogue outputs, as of an EL4732.
#[derive(Clone, Debug)]
pub struct OversamplingOutputs {
    levels: [Level; CHANNELS],
    counts: [usize; CHANNELS],
    /// Block that is driven, and how far it is.
    block: Box<[[i16; CHANNELS]; MOST_SAMPLES]>,
    number: usize,
    /// System time of the last SYNC0.
    last: Option<u64>,
}

impl OversamplingOutputs {
    /// A terminal that drives `levels`, in digits; 0 outside Op.
    #[must_use]
    pub fn new(levels: [Level; CHANNELS]) -> Self {
        let block = Box::new([[0; CHANNELS]; MOST_SAMPLES]);
        Self { levels, counts: [1; CHANNELS], block, number: MOST_SAMPLES, last: None }
    }

    /// Drives the next sample; after the last one it stays.
    fn drive(&mut self, now: Instant) {
        for (channel, count) in self.counts.into_iter().enumerate() {
            if self.number < count {
                self.levels[channel].set_at(now, self.block[self.number][channel].into());
            }
        }
        self.number = self.number.saturating_add(1);
    }

    fn stop(&mut self, now: Instant) {
        self.number = MOST_SAMPLES;
        self.levels.iter().filter(|level| level.get() != 0.0).for_each(|level| level.set_at(now, 0.0));
    }
}

impl Application for OversamplingOutputs {
    fn arrange(&mut self, sync_managers: &[usize; SYNC_MANAGERS]) {
        self.counts = counts(sync_managers);
    }

    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: bytes(self.counts), inputs: 0 }
    }

    fn synchronisation(&self) -> Option<Synchronisation> {
        Some(Synchronisation { kinds: [BY_SYNC1, 0], minimum_cycle: SHORTEST_SAMPLE, ..Default::default() })
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        if outputs.is_none() {
            self.stop(now);
        }
    }

    fn sync0(&mut self, event: Sync0Event, outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        self.last = Some(event.system_time);
        if outputs.is_some() {
            self.drive(event.now);
        }
    }

    fn sync1(&mut self, event: Sync0Event, outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        let Some(mut rest) = outputs else { return };
        for (channel, count) in self.counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let Some((own, behind)) = rest.split_at_checked(WORD * (1 + count)) else { return };
            rest = behind;
            for (sample, bytes) in self.block.iter_mut().zip(own[WORD..].chunks_exact(WORD)) {
                sample[channel] = i16::from_le_bytes([bytes[0], bytes[1]]);
            }
        }
        self.number = 0;
        if self.last == Some(event.system_time) {
            self.drive(event.now);
        }
    }
}

/// Samples of each channel by the bytes of its SyncManager, equal for both; 0 without one. One
/// sample each if they do not fit.
fn counts(sync_managers: &[usize; SYNC_MANAGERS]) -> [usize; CHANNELS] {
    let found: [Option<usize>; CHANNELS] = array::from_fn(|channel| match sync_managers[channel] {
        0 => Some(0),
        bytes => (bytes / WORD)
            .checked_sub(1)
            .filter(|count| bytes % WORD == 0 && (1..=MOST_SAMPLES).contains(count)),
    });
    match found {
        [Some(one), Some(other)] if one + other > 0 && (one == other || one == 0 || other == 0) => {
            [one, other]
        }
        _ => [1; CHANNELS],
    }
}

fn bytes(counts: [usize; CHANNELS]) -> usize {
    counts.into_iter().filter(|count| *count > 0).map(|count| WORD * (1 + count)).sum()
}

/// PDOs of an EL3702 with one sample of each channel.
#[must_use]
pub fn el3702_mapping() -> PdoMapping {
    let inputs = blocks(INPUT_COUNTERS, INPUT_SAMPLES, 0x6000);
    let next = next_block(MAPPING_INPUTS + 0x110, "StartTimeNextLatch");
    PdoMapping { outputs: Vec::new(), inputs: inputs.chain([next]).collect() }
}

/// PDOs of an EL4732 with one sample of each channel.
#[must_use]
pub fn el4732_mapping() -> PdoMapping {
    let outputs = blocks(OUTPUT_COUNTERS, OUTPUT_SAMPLES, 0x7000);
    let next = next_block(MAPPING_INPUTS + 0x82, "StartTimeNextOutput");
    PdoMapping { outputs: outputs.collect(), inputs: vec![next] }
}

/// Counter and sample of each channel. The objects of samples begin at `samples`, the counters'
/// objects 0x800 later.
fn blocks(counters: [u16; CHANNELS], samples: [u16; CHANNELS], objects: u16) -> impl Iterator<Item = Pdo> {
    (0..CHANNELS).flat_map(move |channel| {
        let (place, number) = (channel as u8, channel as u8 + 1);
        let counter_name = format!("Ch{number} CycleCount");
        let counter = entry(objects + 0x800, number, DataType::U16, &counter_name);
        let sample = entry(objects, number, DataType::I16, &format!("Ch{number} Value"));
        let sample_name = format!("Ch{number} Sample");
        [
            fixed_pdo(counters[channel], place, &counter_name, vec![counter]),
            fixed_pdo(samples[channel], place, &sample_name, vec![sample]),
        ]
    })
}

/// Time of the next SYNC1, in the low 32 bits of the system time.
fn next_block(index: u16, name: &str) -> Pdo {
    let register = entry(REGISTERS, NEXT_BLOCK as u8, DataType::U32, name);
    fixed_pdo(index, CHANNELS as u8, name, vec![register])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: u64 = 100_000;

    fn event(samples: u64) -> Sync0Event {
        Sync0Event { now: Instant::from_nanos(samples * SAMPLE), system_time: 7_000_000 + samples * SAMPLE }
    }

    fn lengths(of_each: [usize; 3]) -> [usize; SYNC_MANAGERS] {
        let mut lengths = [0; SYNC_MANAGERS];
        lengths[..3].copy_from_slice(&of_each);
        lengths
    }

    fn words(bytes: &[u8]) -> Vec<i16> {
        bytes.chunks(2).map(|word| i16::from_le_bytes([word[0], word[1]])).collect()
    }

    fn start(it: &mut impl Application) {
        let lengths = it.process_data_lengths();
        let change = StateChange { from: AlState::PreOp, to: AlState::SafeOp, lengths, sync0: None };
        assert_eq!(it.enter(&change), Ok(()));
    }

    /// A block begins with the sample of the SYNC0 that comes with its SYNC1, and is handed over at
    /// the next.
    #[test]
    fn a_block_holds_the_samples_from_one_sync1_to_the_next() {
        // One digit each sample period.
        let ramp = Signal::Ramp { from: 0.0, to: 10_000.0, frequency: 1.0 };
        let mut it = OversamplingInputs::new([ramp, Signal::Constant(-3.0)]).expect("two signals");
        it.arrange(&lengths([10, 10, 0]));
        assert_eq!(it.process_data_lengths(), ProcessDataLengths { outputs: 0, inputs: 20 });
        start(&mut it);
        let mut inputs = [0; 20];
        for sample in 2..=12 {
            it.sync0(event(sample), None, &mut inputs);
            if sample % 4 == 0 {
                it.sync1(event(sample), None, &mut inputs);
            }
            let expected = match sample {
                // Nothing before a whole block.
                ..=7 => [0; 10],
                8..=11 => [1, 4, 5, 6, 7, 1, -3, -3, -3, -3],
                _ => [2, 8, 9, 10, 11, 2, -3, -3, -3, -3],
            };
            assert_eq!(words(&inputs), expected, "sample {sample}");
        }
    }

    /// More SYNC0s than samples in a block: the excess is omitted; fewer: the remaining samples are
    /// 0.
    #[test]
    fn a_block_of_another_number_of_samples_is_cut_or_filled() {
        let ramp = Signal::Ramp { from: 0.0, to: 10_000.0, frequency: 1.0 };
        let mut it = OversamplingInputs::new([ramp.clone(), ramp]).expect("two signals");
        it.arrange(&lengths([8, 0, 0]));
        start(&mut it);
        let mut inputs = [0; 8];
        for sample in 0..=6 {
            it.sync0(event(sample), None, &mut inputs);
            if [0, 4, 6].contains(&sample) {
                it.sync1(event(sample), None, &mut inputs);
            }
            if sample == 4 {
                assert_eq!(words(&inputs), [1, 0, 1, 2]);
            }
        }
        assert_eq!(words(&inputs), [2, 4, 5, 0]);
    }

    /// Each SYNC0 drives one sample of the block that SYNC1 took, beginning with the simultaneous
    /// SYNC0.
    #[test]
    fn outputs_are_driven_sample_by_sample() {
        let levels = [Level::with_course(), Level::default()];
        let mut it = OversamplingOutputs::new(levels.clone());
        it.arrange(&lengths([8, 8, 4]));
        let outputs: Vec<u8> =
            [9_i16, 10, 20, 30, 9, -1, -2, -3].iter().flat_map(|it| it.to_le_bytes()).collect();
        let mut driven = Vec::new();
        for sample in 3..=7 {
            it.sync0(event(sample), Some(&outputs), &mut []);
            if sample == 3 {
                it.sync1(event(sample), Some(&outputs), &mut []);
            }
            driven.push(levels.each_ref().map(Level::get));
        }
        let last = [30.0, -3.0];
        assert_eq!(driven, [[10.0, -1.0], [20.0, -2.0], last, last, last]);
        let at = |samples: u64| levels[0].at(Instant::from_nanos(samples * SAMPLE));
        assert_eq!([3, 4, 5, 6].map(at), [10.0, 20.0, 30.0, 30.0]);
        // Outside Op they are 0.
        it.step(event(8).now, None, &mut []);
        assert_eq!(levels.each_ref().map(Level::get), [0.0, 0.0]);
    }

    /// SyncManagers without a whole number of samples, with too many, or with different numbers are
    /// refused by their lengths.
    #[test]
    fn lengths_that_do_not_fit_count_as_one_sample() {
        for (found, expected) in [
            ([22, 22, 4], [10, 10]),
            ([202, 202, 4], [100, 100]),
            ([22, 0, 4], [10, 0]),
            ([0, 22, 0], [0, 10]),
            ([204, 204, 4], [1, 1]),
            ([22, 24, 4], [1, 1]),
            ([23, 23, 4], [1, 1]),
            ([2, 2, 4], [1, 1]),
            ([0, 0, 4], [1, 1]),
        ] {
            assert_eq!(counts(&lengths(found)), expected, "{found:?}");
        }
        let broken = [Signal::Constant(f64::NAN), Signal::Constant(0.0)];
        assert!(OversamplingInputs::new(broken).is_err());
    }
}
