//! Analogue outputs: 16-bit values, described by CoE, each with the value it has outside Op.

use ethercat::pdo::{MAPPING_OUTPUTS, Pdo, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::Level;
use super::coe_application::CoeApplication;
use super::description::{DescriptionError, channels};
use super::sii::entry;
use crate::coe::{CoeDevice, DataType, DeviceDescription, Entry, EntryId, Object, READ_WRITE, common};

/// Largest number of channels of a terminal.
pub const MAXIMUM_CHANNELS: usize = 16;

/// First object of the channels; each has its value at sub-index 1.
pub const CHANNELS: u16 = 0x7000;

/// First object of the settings; each has its value outside Op at sub-index 0x13.
pub const SETTINGS: u16 = 0x8000;

/// Distance between the objects of two channels.
const CHANNEL_STEP: u16 = 0x10;

const VALUE_SUB_INDEX: u8 = 0x01;
const DEFAULT_SUB_INDEX: u8 = 0x13;

/// A terminal with analogue outputs.
#[derive(Clone, Debug)]
pub struct AnalogueOutputs {
    coe: CoeDevice,
    channels: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    /// Output in digits: 0x7FFF is full scale.
    level: Level,
    value: EntryId,
    default: EntryId,
}

impl AnalogueOutputs {
    /// A terminal that drives `levels`, 1 to 16, in digits. Outside Op each has its default value
    /// (0x80n0:13).
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels.
    pub fn new(device: &DeviceDescription, levels: &[Level]) -> Result<Self, DescriptionError> {
        channels(levels.len(), MAXIMUM_CHANNELS, "1 to 16")?;
        let mut dictionary = common::dictionary(device);
        for number in 0..levels.len() as u16 {
            let name = |what: &str| format!("AO {what} channel {}", number + 1);
            let access = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
            let value = Entry::new(VALUE_SUB_INDEX, "Analog output", DataType::I16, access);
            let index = CHANNELS + CHANNEL_STEP * number;
            dictionary.add(Object::record(index, name("outputs"), 0, vec![value]));
            let default = Entry::new(DEFAULT_SUB_INDEX, "Default output", DataType::I16, READ_WRITE);
            let index = SETTINGS + CHANNEL_STEP * number;
            dictionary.add(Object::record(index, name("settings"), 0, vec![default]));
        }
        common::add_mapping(&mut dictionary, &mapping(levels.len()), 0);
        let entry = |first: u16, number: usize, sub_index| {
            let index = first + CHANNEL_STEP * number as u16;
            dictionary.find(index, sub_index).expect("both entries were added above")
        };
        let channels = levels.iter().enumerate().map(|(number, level)| Channel {
            level: level.clone(),
            value: entry(CHANNELS, number, VALUE_SUB_INDEX),
            default: entry(SETTINGS, number, DEFAULT_SUB_INDEX),
        });
        let channels = channels.collect();
        Ok(Self { coe: CoeDevice::new(dictionary), channels })
    }
}

/// PDOs of a terminal with this many channels: one fixed RxPDO each, 2 bytes.
#[must_use]
pub fn mapping(channels: usize) -> PdoMapping {
    let pdo = |number: u16| Pdo {
        index: MAPPING_OUTPUTS + number,
        sync_manager: Some(2),
        fixed: true,
        name: format!("AO RxPDO-Map channel {}", number + 1),
        entries: vec![entry(
            CHANNELS + CHANNEL_STEP * number,
            VALUE_SUB_INDEX,
            DataType::I16,
            "Analog output",
        )],
    };
    PdoMapping {
        outputs: (0..channels.min(MAXIMUM_CHANNELS) as u16).map(pdo).collect(),
        inputs: Vec::new(),
    }
}

impl CoeApplication for AnalogueOutputs {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, _now: Instant, operational: bool) {
        let dictionary = self.coe.dictionary();
        for channel in &self.channels {
            let shown = if operational { channel.value } else { channel.default };
            channel.level.set(dictionary.get(shown) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use ethercat::al::AlState;
    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, ProcessDataLengths};

    #[test]
    fn channels_drive_their_levels_and_default_outside_op() {
        let device = DeviceDescription::new(Identity::default(), "device");
        let levels = [Level::default(), Level::default()];
        let mut terminal = AnalogueOutputs::new(&device, &levels).expect("two channels");
        assert_eq!(terminal.process_data_lengths(), ProcessDataLengths { outputs: 4, inputs: 0 });
        let dictionary = terminal.coe.dictionary_mut();
        let set = dictionary.download(0x8010, 0x13, &5_i16.to_le_bytes(), AlState::PreOp);
        assert_eq!(set, Ok(()));
        let mut shown = |outputs: Option<&[u8]>| {
            terminal.step(Instant::EPOCH, outputs, &mut []);
            levels.each_ref().map(Level::get)
        };
        assert_eq!(shown(Some(&[0xFE, 0xFF, 0xFF, 0x7F])), [-2.0, 32_767.0]);
        assert_eq!(shown(None), [0.0, 5.0]);
        assert_eq!(terminal.coe.dictionary().value(0x7010, 0x01), Some(32_767));
    }

    #[test]
    fn a_terminal_has_1_to_16_channels() {
        let device = DeviceDescription::new(Identity::default(), "device");
        let new = |number| AnalogueOutputs::new(&device, &vec![Level::default(); number]).is_ok();
        assert_eq!([0, 1, 16, 17].map(new), [false, true, true, false]);
    }
}
