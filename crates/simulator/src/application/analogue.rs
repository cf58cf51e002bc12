//! Analogue inputs: 16-bit values, each with a status word before it, described by CoE.

use ethercat::pdo::{MAPPING_INPUTS, Pdo, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::Signal;
use super::coe_application::CoeApplication;
use super::description::{DescriptionError, channels};
use super::sii::{entry, padding};
use crate::coe::{CoeDevice, DataType, DeviceDescription, Entry, EntryId, Object, common};

/// Largest number of channels of a terminal.
pub const MAXIMUM_CHANNELS: usize = 16;

/// Status bit: below the range; the value is the smallest.
pub const STATUS_UNDERRANGE: u16 = 1 << 0;
/// Status bit: above the range; the value is the largest.
pub const STATUS_OVERRANGE: u16 = 1 << 1;
/// Status bit: changes with every new value.
pub const STATUS_TOGGLE: u16 = 1 << 15;

/// First object of the channels; each has status at sub-index 1 and value at sub-index 0x11.
pub const CHANNELS: u16 = 0x6000;

/// Distance between the objects of two channels.
const CHANNEL_STEP: u16 = 0x10;

const STATUS_SUB_INDEX: u8 = 0x01;
const VALUE_SUB_INDEX: u8 = 0x11;

/// Status bit of an EL3104: outside the range.
pub const STATUS_ERROR: u16 = 1 << 6;

/// Status of a channel: a word, or each bit for itself: sub-index, bits, first bit in the word,
/// name; padding has sub-index 0.
type Status = &'static [(u8, DataType, u8, &'static str)];

const WORD: Status = &[(STATUS_SUB_INDEX, DataType::U16, 0, "Status")];

const EL3104: Status = &[
    (0x01, DataType::Boolean, 0, "Underrange"),
    (0x02, DataType::Boolean, 1, "Overrange"),
    (0x03, DataType::Bits(2), 2, "Limit 1"),
    (0x05, DataType::Bits(2), 4, "Limit 2"),
    (0x07, DataType::Boolean, 6, "Error"),
    (0, DataType::Bits(6), 7, ""),
    (0x0E, DataType::Boolean, 13, "Sync error"),
    (0x0F, DataType::Boolean, 14, "TxPDO State"),
    (0x10, DataType::Boolean, 15, "TxPDO Toggle"),
];

/// A terminal with analogue inputs.
#[derive(Clone, Debug)]
pub struct AnalogueInputs {
    coe: CoeDevice,
    channels: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    signal: Signal,
    /// Entries of the status, and their first bits in the word.
    status: Vec<(EntryId, u8)>,
    value: EntryId,
    toggle: bool,
}

impl AnalogueInputs {
    /// A terminal with one channel for each of `signals`, 1 to 16, in digits: 0x7FFF is full scale.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels or a signal that is not finite.
    pub fn new(device: &DeviceDescription, signals: &[Signal]) -> Result<Self, DescriptionError> {
        Self::with_status(device, signals, WORD, &mapping(signals.len()))
    }

    /// An EL3104 with channels that measure `signals`.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for a signal that is not finite.
    pub fn el3104(device: &DeviceDescription, signals: &[Signal; 4]) -> Result<Self, DescriptionError> {
        Self::with_status(device, signals, EL3104, &el3104_mapping())
    }

    fn with_status(
        device: &DeviceDescription,
        signals: &[Signal],
        status: Status,
        mapping: &PdoMapping,
    ) -> Result<Self, DescriptionError> {
        channels(signals.len(), MAXIMUM_CHANNELS, "1 to 16")?;
        let mut dictionary = common::dictionary(device);
        for (number, signal) in signals.iter().enumerate() {
            signal.check()?;
            let access = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
            let shown = status.iter().filter(|(sub_index, ..)| *sub_index != 0);
            let shown = shown.map(|&(sub, data_type, _, name)| Entry::new(sub, name, data_type, access));
            let value = Entry::new(VALUE_SUB_INDEX, "Value", DataType::I16, access);
            let entries = shown.chain([value]).collect();
            let name = format!("AI inputs channel {}", number + 1);
            dictionary.add(Object::record(CHANNELS + CHANNEL_STEP * number as u16, name, 0, entries));
        }
        common::add_mapping(&mut dictionary, mapping, 0);
        let channels = signals.iter().enumerate().map(|(number, signal)| {
            let index = CHANNELS + CHANNEL_STEP * number as u16;
            let entry = |sub| dictionary.find(index, sub).expect("all entries were added above");
            let status = status.iter().filter(|(sub_index, ..)| *sub_index != 0);
            let status = status.map(|&(sub_index, _, bit, _)| (entry(sub_index), bit)).collect();
            Channel { signal: signal.clone(), status, value: entry(VALUE_SUB_INDEX), toggle: false }
        });
        let channels = channels.collect();
        Ok(Self { coe: CoeDevice::new(dictionary), channels })
    }

    fn sample(&mut self, now: Instant) {
        let dictionary = self.coe.dictionary_mut();
        for channel in &mut self.channels {
            let signal = channel.signal.at(now).round();
            let value = signal as i16;
            let mut status = 0;
            if signal < f64::from(i16::MIN) {
                status |= STATUS_UNDERRANGE;
            } else if signal > f64::from(i16::MAX) {
                status |= STATUS_OVERRANGE;
            }
            if channel.status.len() > 1 && status != 0 {
                status |= STATUS_ERROR;
            }
            channel.toggle = !channel.toggle;
            if channel.toggle {
                status |= STATUS_TOGGLE;
            }
            for &(entry, bit) in &channel.status {
                dictionary.set(entry, i64::from(status >> bit));
            }
            dictionary.set(channel.value, i64::from(value));
        }
    }
}

/// PDOs of a terminal with this many channels: one fixed TxPDO each, 4 bytes.
#[must_use]
pub fn mapping(channels: usize) -> PdoMapping {
    mapping_of(channels, 1, WORD)
}

/// PDOs of an EL3104: the odd ones of its channels, without a status, are not assigned and left
/// out.
#[must_use]
pub fn el3104_mapping() -> PdoMapping {
    mapping_of(4, 2, EL3104)
}

fn mapping_of(channels: usize, step: u16, status: Status) -> PdoMapping {
    let pdo = |number: u16| {
        let index = CHANNELS + CHANNEL_STEP * number;
        let status = status.iter().map(|&(sub_index, data_type, _, name)| match sub_index {
            0 => padding(data_type.bit_length().map_or(0, |bits| bits as u8)),
            _ => entry(index, sub_index, data_type, name),
        });
        Pdo {
            index: MAPPING_INPUTS + step * number,
            sync_manager: Some(3),
            fixed: true,
            name: format!("AI TxPDO-Map channel {}", number + 1),
            entries: status.chain([entry(index, VALUE_SUB_INDEX, DataType::I16, "Value")]).collect(),
        }
    };
    PdoMapping {
        outputs: Vec::new(),
        inputs: (0..channels.min(MAXIMUM_CHANNELS) as u16).map(pdo).collect(),
    }
}

impl CoeApplication for AnalogueInputs {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, now: Instant, _operational: bool) {
        self.sample(now);
    }
}

#[cfg(test)]
mod tests {
    use ethercat::al::AlState;
    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, ProcessDataLengths};

    fn device() -> DeviceDescription {
        DeviceDescription::new(Identity::default(), "device")
    }

    #[test]
    fn each_channel_shows_status_and_value() {
        let sine = Signal::Sine { offset: 100.0, amplitude: 1000.0, frequency: 50.0, phase: 0.0 };
        let signals = [Signal::Constant(-7.0), sine, Signal::Constant(40_000.0)];
        let mut terminal = AnalogueInputs::new(&device(), &signals).expect("three channels");
        assert_eq!(terminal.process_data_lengths(), ProcessDataLengths { outputs: 0, inputs: 12 });
        let mut inputs = [0; 12];
        // A quarter of the sine's period, after a year.
        let now = Instant::from_nanos(31_536_000_005_000_000);
        terminal.step(now, None, &mut inputs);
        let words: Vec<_> = inputs.chunks(2).map(|word| i16::from_le_bytes([word[0], word[1]])).collect();
        let toggle = STATUS_TOGGLE as i16;
        assert_eq!(words, [toggle, -7, toggle, 1100, toggle | STATUS_OVERRANGE as i16, i16::MAX]);
        terminal.step(now, None, &mut inputs);
        assert_eq!(inputs[1] & 0x80, 0, "the toggle bit");
        let dictionary = terminal.coe.dictionary();
        assert_eq!(dictionary.upload(0x6010, 0x11, AlState::PreOp), Ok(&1100_i16.to_le_bytes()[..]));
    }

    #[test]
    fn a_terminal_has_1_to_16_finite_channels() {
        let new = |signals: &[Signal]| AnalogueInputs::new(&device(), signals).err();
        assert!(new(&[]).is_some() && new(&vec![Signal::Constant(0.0); 17]).is_some());
        assert!(new(&[Signal::Constant(f64::NAN)]).is_some());
        assert!(new(&vec![Signal::Constant(0.0); 16]).is_none());
    }
}
