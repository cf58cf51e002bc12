//! A force-torque sensor: three forces and three torques as 32-bit counts, described by CoE.
//!
//! Simplifications: one calibration, and of the control bits only the bias.

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::Signal;
use super::coe_application::CoeApplication;
use super::description::DescriptionError;
use super::sii::entry;
use crate::coe::{CoeDevice, DataType, DeviceDescription, Entry, EntryId, Object, READ_WRITE, common};

/// Counts of the reading data for each newton and newton metre (0x2021:37 and :38).
pub const COUNTS: f64 = 1e6;

/// Reading data: forces along x, y, z at sub-index 1 to 3, torques about them at 4 to 6.
pub const READING: u16 = 0x6000;
/// Status code: 0 while all is well.
pub const STATUS_CODE: u16 = 0x6010;
/// Counter of the samples.
pub const SAMPLE_COUNTER: u16 = 0x6020;
/// Control codes.
pub const CONTROL: u16 = 0x7010;
/// Calibration.
pub const CALIBRATION: u16 = 0x2021;

/// Control bit: what is measured now counts as 0 from here on.
pub const SET_BIAS: i64 = 1 << 0;
/// Control bit: nothing is taken off.
pub const CLEAR_BIAS: i64 = 1 << 2;

const AXES: [&str; 6] = ["Fx", "Fy", "Fz", "Tx", "Ty", "Tz"];

/// A force-torque sensor.
#[derive(Clone, Debug)]
pub struct ForceTorqueSensor {
    coe: CoeDevice,
    signals: [Signal; 6],
    bias: [f64; 6],
    samples: u32,
    readings: [EntryId; 6],
    sample_counter: EntryId,
    control: EntryId,
}

impl ForceTorqueSensor {
    /// A sensor that measures `signals`: three forces in N, three torques in N m.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for a signal that is not finite.
    pub fn new(device: &DeviceDescription, signals: [Signal; 6]) -> Result<Self, DescriptionError> {
        signals.iter().try_for_each(Signal::check)?;
        let mut dictionary = common::dictionary(device);
        let shown = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
        let readings = AXES.iter().zip(1..).map(|(name, sub)| Entry::new(sub, *name, DataType::I32, shown));
        dictionary.add(Object::record(READING, "Reading data", 0, readings.collect()));
        let status = Entry::new(0, "Status code", DataType::U32, shown);
        dictionary.add(Object::variable(STATUS_CODE, status));
        let counter = Entry::new(0, "Sample counter", DataType::U32, shown);
        dictionary.add(Object::variable(SAMPLE_COUNTER, counter));
        let taken = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
        let control = |sub, name| Entry::new(sub, name, DataType::U32, taken);
        let codes = vec![control(1, "Control 1"), control(2, "Control 2")];
        dictionary.add(Object::record(CONTROL, "Control codes", 0, codes));
        let counts =
            |sub, name| Entry::new(sub, name, DataType::I32, AccessRights::READ).with_value(COUNTS as i64);
        let calibration = vec![counts(0x37, "Counts per force"), counts(0x38, "Counts per torque")];
        dictionary.add(Object::record(CALIBRATION, "Calibration", 0, calibration));
        common::add_mapping(&mut dictionary, &mapping(), 0);
        let find = |index, sub| dictionary.find(index, sub).expect("all entries were added above");
        let readings = [1, 2, 3, 4, 5, 6].map(|sub| find(READING, sub));
        let (sample_counter, control) = (find(SAMPLE_COUNTER, 0), find(CONTROL, 1));
        let coe = CoeDevice::new(dictionary);
        Ok(Self { coe, signals, bias: [0.0; 6], samples: 0, readings, sample_counter, control })
    }

    fn sample(&mut self, now: Instant) {
        let Self { coe, signals, bias, samples, readings, sample_counter, control } = self;
        let dictionary = coe.dictionary_mut();
        let measured = signals.each_ref().map(|signal| signal.at(now));
        let asked = dictionary.get(*control);
        if asked & CLEAR_BIAS != 0 {
            *bias = [0.0; 6];
        } else if asked & SET_BIAS != 0 {
            *bias = measured;
        }
        for ((id, measured), bias) in readings.iter().zip(measured).zip(bias) {
            let counts = ((measured - *bias) * COUNTS).round();
            // The nearest that 32 bits hold.
            dictionary.set(*id, i64::from(counts as i32));
        }
        *samples = samples.wrapping_add(1);
        dictionary.set(*sample_counter, i64::from(*samples));
    }
}

/// PDOs of the sensor: a fixed RxPDO of 8 bytes, a fixed TxPDO of 32.
#[must_use]
pub fn mapping() -> PdoMapping {
    let control = |sub, name| entry(CONTROL, sub, DataType::U32, name);
    let mut inputs: Vec<_> =
        AXES.iter().zip(1..).map(|(name, sub)| entry(READING, sub, DataType::I32, name)).collect();
    inputs.push(entry(STATUS_CODE, 0, DataType::U32, "Status code"));
    inputs.push(entry(SAMPLE_COUNTER, 0, DataType::U32, "Sample counter"));
    let pdo = |index, sync_manager, name: &str, entries| Pdo {
        index,
        sync_manager: Some(sync_manager),
        fixed: true,
        name: name.to_owned(),
        entries,
    };
    PdoMapping {
        outputs: vec![pdo(
            MAPPING_OUTPUTS + 1,
            2,
            "Control",
            vec![control(1, "Control 1"), control(2, "Control 2")],
        )],
        inputs: vec![pdo(MAPPING_INPUTS, 3, "Reading", inputs)],
    }
}

impl CoeApplication for ForceTorqueSensor {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, now: Instant, _operational: bool) {
        self.sample(now);
    }

    fn restart(&mut self) {
        (self.bias, self.samples) = ([0.0; 6], 0);
    }
}

#[cfg(test)]
mod tests {
    use ethercat::al::AlState;
    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, ProcessDataLengths};

    #[test]
    fn forces_and_torques_are_counts_and_a_bias_is_taken_off() {
        let device = DeviceDescription::new(Identity::default(), "device");
        let measured = [1.5, -2.0, 9_000.0, 0.25, 0.0, -0.000_001];
        let signals = measured.map(Signal::Constant);
        let mut sensor = ForceTorqueSensor::new(&device, signals).expect("a sensor");
        assert_eq!(sensor.process_data_lengths(), ProcessDataLengths { outputs: 8, inputs: 32 });
        let mut step = |control: u8| {
            let mut inputs = [0; 32];
            sensor.step(Instant::EPOCH, Some(&[control, 0, 0, 0, 0, 0, 0, 0]), &mut inputs);
            let words =
                inputs.chunks(4).map(|word| i32::from_le_bytes([word[0], word[1], word[2], word[3]]));
            words.collect::<Vec<_>>()
        };
        assert_eq!(step(0), [1_500_000, -2_000_000, i32::MAX, 250_000, 0, -1, 0, 1]);
        assert_eq!(step(1), [0, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(step(0), [0, 0, 0, 0, 0, 0, 0, 3]);
        assert_eq!(step(0b100)[..2], [1_500_000, -2_000_000]);
        let counts = sensor.coe.dictionary().upload(0x2021, 0x38, AlState::PreOp);
        assert_eq!(counts, Ok(&1_000_000_i32.to_le_bytes()[..]));
        assert!(ForceTorqueSensor::new(&device, [f64::NAN; 6].map(Signal::Constant)).is_err());
    }
}
