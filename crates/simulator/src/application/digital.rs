//! Digital outputs and inputs: channels of one bit, no mailbox.
//!
//! An output terminal drives [`Wires`], an input terminal reads them. With the same wires, inputs
//! loop back outputs; with separate wires, code sets the inputs and reads the outputs.
//! [`DigitalInputs::set`] gives an input its own level and disconnects it from the wires. An output
//! may power a brake, and inputs may show its state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ethercat::time::Instant;
use types::state::BrakeInput;

use super::brake::ShaftBrake;
use super::description::{DescriptionError, channels};
use super::{Application, ProcessDataLengths};

/// Largest number of channels of a terminal.
pub const MAXIMUM_CHANNELS: u8 = 64;

/// Up to 64 wires, each high or low; clones share the wires.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    levels: Arc<AtomicU64>,
}

impl Wires {
    /// Wires that are all low.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Levels of the wires, wire 0 in the lowest bit.
    #[must_use]
    pub fn levels(&self) -> u64 {
        // Relaxed here and below: the word orders no other memory.
        self.levels.load(Ordering::Relaxed)
    }

    /// Sets all levels at once.
    pub fn set_levels(&self, levels: u64) {
        self.levels.store(levels, Ordering::Relaxed);
    }

    /// Sets one wire; numbers above 63 have no effect.
    pub fn set(&self, wire: u8, high: bool) {
        let bit = bit(wire);
        if high {
            self.levels.fetch_or(bit, Ordering::Relaxed);
        } else {
            self.levels.fetch_and(!bit, Ordering::Relaxed);
        }
    }
}

/// A terminal with digital outputs.
#[derive(Clone, Debug)]
pub struct DigitalOutputs {
    channels: u8,
    wires: Wires,
    /// Brakes with their outputs, from 0.
    coils: Vec<(u8, ShaftBrake)>,
}

impl DigitalOutputs {
    /// A terminal that drives the first `channels` of `wires`, 1 to 64. All are low unless the
    /// state is Op.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels.
    pub fn new(channels: u8, wires: Wires) -> Result<Self, DescriptionError> {
        Ok(Self { channels: checked(channels)?, wires, coils: Vec::new() })
    }

    /// The same; its `output`, from 0, powers the coil of a brake.
    #[must_use]
    pub fn with_coil(mut self, output: u8, brake: ShaftBrake) -> Self {
        self.coils.push((output, brake));
        self
    }
}

impl Application for DigitalOutputs {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: bytes(self.channels), inputs: 0 }
    }

    fn is_logic(&self) -> bool {
        true
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, _inputs: &mut [u8]) {
        let mut raw = [0; 8];
        for (byte, output) in raw.iter_mut().zip(outputs.unwrap_or(&[])) {
            *byte = *output;
        }
        let own = mask(self.channels);
        let others = self.wires.levels() & !own;
        let levels = others | u64::from_le_bytes(raw) & own;
        self.wires.set_levels(levels);
        for (output, brake) in &self.coils {
            brake.set_power(now, levels & bit(*output) != 0);
        }
    }
}

/// A terminal with digital inputs.
#[derive(Clone, Debug)]
pub struct DigitalInputs {
    channels: u8,
    wires: Wires,
    /// Levels of the first inputs from the start.
    initial: Vec<bool>,
    /// Inputs with a set level, a bit each.
    own: u64,
    /// Level of each of them.
    levels: u64,
    contacts: Vec<Contact>,
}

/// Contact of a brake at an input.
#[derive(Clone, Debug)]
pub struct Contact {
    /// The input, from 0.
    pub input: u8,
    /// The brake.
    pub brake: ShaftBrake,
    /// State of the brake in which the input is on.
    pub shows: BrakeInput,
    /// The input is low while it is on.
    pub inverted: bool,
}

impl Contact {
    fn level(&self, now: Instant) -> bool {
        let state = self.brake.look(now);
        let is_on = match self.shows {
            BrakeInput::Released => state.released,
            BrakeInput::Closed => state.closed,
        };
        is_on != self.inverted
    }
}

impl DigitalInputs {
    /// A terminal that reads the first `channels` of `wires`, 1 to 64.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels.
    pub fn new(channels: u8, wires: Wires) -> Result<Self, DescriptionError> {
        Ok(Self {
            channels: checked(channels)?,
            wires,
            initial: Vec::new(),
            own: 0,
            levels: 0,
            contacts: Vec::new(),
        })
    }

    /// The same with the contact of a brake at an input.
    #[must_use]
    pub fn with_contact(mut self, contact: Contact) -> Self {
        self.contacts.push(contact);
        self
    }

    /// The same with levels of the first inputs from the start.
    #[must_use]
    pub fn with_initial(mut self, initial: &[bool]) -> Self {
        initial.clone_into(&mut self.initial);
        (0..MAXIMUM_CHANNELS).for_each(|input| self.set(input, None));
        self
    }

    /// Number of inputs.
    #[must_use]
    pub fn channels(&self) -> u8 {
        self.channels
    }

    /// Sets an input, from 0, to a level. `None` sets it to its level from the start, or without
    /// one to its wire's.
    pub fn set(&mut self, input: u8, level: Option<bool>) {
        let bit = bit(input);
        let level = level.or_else(|| self.initial.get(usize::from(input)).copied());
        self.own = if level.is_some() { self.own | bit } else { self.own & !bit };
        self.levels = if level == Some(true) { self.levels | bit } else { self.levels & !bit };
    }
}

impl Application for DigitalInputs {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: bytes(self.channels) }
    }

    fn step(&mut self, now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let mut wired = self.wires.levels();
        for contact in &self.contacts {
            let (bit, high) = (bit(contact.input), contact.level(now));
            wired = if high { wired | bit } else { wired & !bit };
        }
        let wired = wired & !self.own;
        let levels = (wired | self.levels & self.own) & mask(self.channels);
        for (input, byte) in inputs.iter_mut().zip(levels.to_le_bytes()) {
            *input = byte;
        }
    }

    fn digital_inputs_mut(&mut self) -> Option<&mut DigitalInputs> {
        Some(self)
    }
}

fn checked(number: u8) -> Result<u8, DescriptionError> {
    channels(number.into(), MAXIMUM_CHANNELS.into(), "1 to 64").map(|()| number)
}

fn bytes(channels: u8) -> usize {
    usize::from(channels).div_ceil(8)
}

/// Bit of a channel, from 0; none above 63.
fn bit(channel: u8) -> u64 {
    1_u64.checked_shl(u32::from(channel)).unwrap_or(0)
}

fn mask(channels: u8) -> u64 {
    u64::MAX >> (64 - u32::from(channels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_loop_back_outputs_and_only_their_channels() {
        let wires = Wires::new();
        wires.set(63, true);
        let mut outputs = DigitalOutputs::new(12, wires.clone()).expect("12 channels");
        let mut inputs = DigitalInputs::new(10, wires.clone()).expect("10 channels");
        assert_eq!(outputs.process_data_lengths(), ProcessDataLengths { outputs: 2, inputs: 0 });
        outputs.step(Instant::EPOCH, Some(&[0xA5, 0xFF]), &mut []);
        let mut image = [0; 2];
        inputs.step(Instant::EPOCH, None, &mut image);
        assert_eq!(image, [0xA5, 0x03]);
        assert_eq!(wires.levels(), 1 << 63 | 0x0FA5);
    }

    #[test]
    fn a_set_input_wins_over_its_wire_until_it_is_free() {
        let wires = Wires::new();
        let inputs = DigitalInputs::new(4, wires.clone()).expect("4 channels");
        let mut inputs = inputs.with_initial(&[true, false]);
        let read = |inputs: &mut DigitalInputs| {
            let mut image = [0];
            inputs.step(Instant::EPOCH, None, &mut image);
            image[0]
        };
        assert_eq!(read(&mut inputs), 0b0001);
        wires.set_levels(0b1110);
        assert_eq!(read(&mut inputs), 0b1101, "the second one has its level from the start");
        inputs.set(0, Some(false));
        inputs.set(1, Some(true));
        inputs.set(3, Some(false));
        assert_eq!(read(&mut inputs), 0b0110);
        (0..4).for_each(|input| inputs.set(input, None));
        assert_eq!(read(&mut inputs), 0b1101);
    }

    #[test]
    fn outputs_go_low_outside_op() {
        let wires = Wires::new();
        let mut outputs = DigitalOutputs::new(64, wires.clone()).expect("64 channels");
        outputs.step(Instant::EPOCH, Some(&[0xFF; 8]), &mut []);
        assert_eq!(wires.levels(), u64::MAX);
        outputs.step(Instant::EPOCH, None, &mut []);
        assert_eq!(wires.levels(), 0);
    }

    #[test]
    fn a_terminal_has_1_to_64_channels() {
        for channels in [0, 65, 255] {
            let error = DigitalInputs::new(channels, Wires::new()).expect_err("no such terminal");
            assert_eq!(error.to_string(), format!("channels is {channels}, expected 1 to 64"));
        }
    }
}
