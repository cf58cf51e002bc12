//! Analogue inputs: 16-bit values, each with a status word before it, described by CoE.

use ethercat::pdo::{MAPPING_INPUTS, Pdo, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::Signal;
use super::coe_application::CoeApplication;
use super::description::{DescriptionError, channels};
use super::sii::entry;
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

/// A terminal with analogue inputs.
#[derive(Clone, Debug)]
pub struct AnalogueInputs {
    coe: CoeDevice,
    channels: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    signal: Signal,
    status: EntryId,
    value: EntryId,
    toggle: bool,
}

impl AnalogueInputs {
    /// A terminal with one channel for each of `signals`, 1 to 16, in digits: 0x7FFF is full scale.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels or a signal that is not finite.
    pub fn new(device: &DeviceDescription, signals: &[Signal]) -> Result<Self, DescriptionError> {
        channels(signals.len(), MAXIMUM_CHANNELS, "1 to 16")?;
        let mut dictionary = common::dictionary(device);
        for (number, signal) in signals.iter().enumerate() {
            signal.check()?;
            let access = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
            let entries = vec![
                Entry::new(STATUS_SUB_INDEX, "Status", DataType::U16, access),
                Entry::new(VALUE_SUB_INDEX, "Value", DataType::I16, access),
            ];
            let name = format!("AI inputs channel {}", number + 1);
            dictionary.add(Object::record(CHANNELS + CHANNEL_STEP * number as u16, &name, 0, entries));
        }
        common::add_mapping(&mut dictionary, &mapping(signals.len()), 0);
        let channels = signals.iter().enumerate().map(|(number, signal)| {
            let index = CHANNELS + CHANNEL_STEP * number as u16;
            let entry = |sub| dictionary.find(index, sub).expect("both entries were added above");
            let (status, value) = (entry(STATUS_SUB_INDEX), entry(VALUE_SUB_INDEX));
            Channel { signal: signal.clone(), status, value, toggle: false }
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
            channel.toggle = !channel.toggle;
            if channel.toggle {
                status |= STATUS_TOGGLE;
            }
            dictionary.set(channel.status, i64::from(status));
            dictionary.set(channel.value, i64::from(value));
        }
    }
}

/// PDOs of a terminal with this many channels: one fixed TxPDO each, 4 bytes.
#[must_use]
pub fn mapping(channels: usize) -> PdoMapping {
    let pdo = |number: u16| {
        let index = CHANNELS + CHANNEL_STEP * number;
        Pdo {
            index: MAPPING_INPUTS + number,
            sync_manager: Some(3),
            fixed: true,
            name: format!("AI TxPDO-Map channel {}", number + 1),
            entries: vec![
                entry(index, STATUS_SUB_INDEX, DataType::U16, "Status"),
                entry(index, VALUE_SUB_INDEX, DataType::I16, "Value"),
            ],
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
