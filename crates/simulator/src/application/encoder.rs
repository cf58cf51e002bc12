//! Incremental encoder terminals: a 32-bit counter for each channel, described by CoE.
//!
//! Simplifications: nothing is latched, the index track is never high, and underflow, overflow and
//! stall are not reported.

use ethercat::pdo::{MAPPING_INPUTS, MAPPING_OUTPUTS, Pdo, PdoEntry, PdoMapping};
use ethercat::time::Instant;
use ethercat::wire::coe::AccessRights;

use super::Signal;
use super::coe_application::CoeApplication;
use super::description::{DescriptionError, channels};
use super::sii::{entry, padding};
use crate::coe::{CoeDevice, DataType, DeviceDescription, Entry, EntryId, Object, READ_WRITE, common};

/// Largest number of channels of a terminal.
pub const MAXIMUM_CHANNELS: usize = 2;

/// First object of the inputs: status bits from sub-index 1 on, the counter at 0x11, the latch at
/// 0x12.
pub const INPUTS: u16 = 0x6000;

/// First object of the outputs: control bits from sub-index 1 on, the value to set at 0x11.
pub const OUTPUTS: u16 = 0x7000;

/// Distance between the objects of two channels.
const CHANNEL_STEP: u16 = 0x10;

const SET_COUNTER: u8 = 0x03;
const SET_COUNTER_VALUE: u8 = 0x11;
const COUNTER: u8 = 0x11;

/// Inputs of a channel in their order: sub-index, type, name; padding has sub-index 0.
const STATUS: [(u8, DataType, &str); 17] = [
    (0x01, DataType::Boolean, "Latch C valid"),
    (0x02, DataType::Boolean, "Latch extern valid"),
    (SET_COUNTER, DataType::Boolean, "Set counter done"),
    (0x04, DataType::Boolean, "Counter underflow"),
    (0x05, DataType::Boolean, "Counter overflow"),
    (0, DataType::Bits(2), ""),
    (0x08, DataType::Boolean, "Extrapolation stall"),
    (0x09, DataType::Boolean, "Status of input A"),
    (0x0A, DataType::Boolean, "Status of input B"),
    (0x0B, DataType::Boolean, "Status of input C"),
    (0, DataType::Bits(1), ""),
    (0x0D, DataType::Boolean, "Status of extern latch"),
    (0x0E, DataType::Boolean, "Sync error"),
    (0, DataType::Bits(1), ""),
    (0x10, DataType::Boolean, "TxPDO Toggle"),
    (COUNTER, DataType::U32, "Counter value"),
    (0x12, DataType::U32, "Latch value"),
];

/// Outputs of a channel in their order.
const CONTROL: [(u8, DataType, &str); 6] = [
    (0x01, DataType::Boolean, "Enable latch C"),
    (0x02, DataType::Boolean, "Enable latch extern on positive edge"),
    (SET_COUNTER, DataType::Boolean, "Set counter"),
    (0x04, DataType::Boolean, "Enable latch extern on negative edge"),
    (0, DataType::Bits(12), ""),
    (SET_COUNTER_VALUE, DataType::U32, "Set counter value"),
];

/// The same of an EL5101, which has more.
const EL5101_STATUS: [(u8, DataType, &str); 18] = [
    (0x01, DataType::Boolean, "Latch C valid"),
    (0x02, DataType::Boolean, "Latch extern valid"),
    (SET_COUNTER, DataType::Boolean, "Set counter done"),
    (0x04, DataType::Boolean, "Counter underflow"),
    (0x05, DataType::Boolean, "Counter overflow"),
    (0x06, DataType::Boolean, "Status of input status"),
    (0x07, DataType::Boolean, "Open circuit"),
    (0x08, DataType::Boolean, "Extrapolation stall"),
    (0x09, DataType::Boolean, "Status of input A"),
    (0x0A, DataType::Boolean, "Status of input B"),
    (0x0B, DataType::Boolean, "Status of input C"),
    (0x0C, DataType::Boolean, "Status of input gate"),
    (0x0D, DataType::Boolean, "Status of extern latch"),
    (0x0E, DataType::Boolean, "Sync error"),
    (0x0F, DataType::Boolean, "TxPDO State"),
    (0x10, DataType::Boolean, "TxPDO Toggle"),
    (COUNTER, DataType::U32, "Counter value"),
    (0x12, DataType::U32, "Latch value"),
];

/// Objects and PDOs of the first channel, and what its inputs are.
#[derive(Clone, Copy)]
struct Layout {
    inputs: u16,
    outputs: u16,
    transmitted: u16,
    received: u16,
    status: &'static [(u8, DataType, &'static str)],
}

const USUAL: Layout = Layout {
    inputs: INPUTS,
    outputs: OUTPUTS,
    transmitted: MAPPING_INPUTS,
    received: MAPPING_OUTPUTS,
    status: &STATUS,
};

/// Its assignment of 32 bits.
const EL5101: Layout = Layout {
    inputs: INPUTS + CHANNEL_STEP,
    outputs: OUTPUTS + CHANNEL_STEP,
    transmitted: MAPPING_INPUTS + 4,
    received: MAPPING_OUTPUTS + 3,
    status: &EL5101_STATUS,
};

/// A terminal with incremental encoders.
#[derive(Clone, Debug)]
pub struct Encoders {
    coe: CoeDevice,
    channels: Vec<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    /// Counts of the encoder.
    signal: Signal,
    /// Of these the ones at counter 0, from the first step on.
    origin: Option<f64>,
    toggle: bool,
    entries: EncoderEntries,
}

#[derive(Clone, Copy, Debug)]
struct EncoderEntries {
    set: EntryId,
    set_value: EntryId,
    done: EntryId,
    input_a: EntryId,
    input_b: EntryId,
    toggle: EntryId,
    counter: EntryId,
}

impl Encoders {
    /// A terminal with one encoder for each of `signals`, 1 or 2, in counts. Counters begin at 0
    /// and wrap at 32 bits.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for another number of channels or a signal that is not finite.
    pub fn new(device: &DeviceDescription, signals: &[Signal]) -> Result<Self, DescriptionError> {
        Self::with_layout(device, signals, USUAL)
    }

    /// An EL5101 with an encoder that follows `signal` in counts.
    ///
    /// # Errors
    /// [`DescriptionError::Value`] for a signal that is not finite.
    pub fn el5101(device: &DeviceDescription, signal: Signal) -> Result<Self, DescriptionError> {
        Self::with_layout(device, &[signal], EL5101)
    }

    fn with_layout(
        device: &DeviceDescription,
        signals: &[Signal],
        layout: Layout,
    ) -> Result<Self, DescriptionError> {
        channels(signals.len(), MAXIMUM_CHANNELS, "1 or 2")?;
        signals.iter().try_for_each(Signal::check)?;
        let mut dictionary = common::dictionary(device);
        let inputs = AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE);
        let outputs = READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE);
        for number in 0..signals.len() as u16 {
            let mut add = |first: u16, what: &str, list: &[(u8, DataType, &'static str)], access| {
                let entries = list.iter().filter(|(sub_index, ..)| *sub_index != 0);
                let entries =
                    entries.map(|&(sub, data_type, name)| Entry::new(sub, name, data_type, access));
                let name = format!("ENC {what} channel {}", number + 1);
                let index = first + CHANNEL_STEP * number;
                dictionary.add(Object::record(index, name, 0, entries.collect()));
            };
            add(layout.inputs, "inputs", layout.status, inputs);
            add(layout.outputs, "outputs", &CONTROL, outputs);
        }
        common::add_mapping(&mut dictionary, &mapping_of(signals.len(), layout), 0);
        let channels = signals.iter().enumerate().map(|(number, signal)| {
            let entry = |first: u16, sub_index| {
                let index = first + CHANNEL_STEP * number as u16;
                dictionary.find(index, sub_index).expect("all entries were added above")
            };
            let entries = EncoderEntries {
                set: entry(layout.outputs, SET_COUNTER),
                set_value: entry(layout.outputs, SET_COUNTER_VALUE),
                done: entry(layout.inputs, SET_COUNTER),
                input_a: entry(layout.inputs, 0x09),
                input_b: entry(layout.inputs, 0x0A),
                toggle: entry(layout.inputs, 0x10),
                counter: entry(layout.inputs, COUNTER),
            };
            Channel { signal: signal.clone(), origin: None, toggle: false, entries }
        });
        let channels = channels.collect();
        Ok(Self { coe: CoeDevice::new(dictionary), channels })
    }

    /// Counts, and sets the counters as requested; `operational` in Op.
    fn count(&mut self, now: Instant, operational: bool) {
        let dictionary = self.coe.dictionary_mut();
        for channel in &mut self.channels {
            let Channel { signal, origin, toggle, entries } = channel;
            let turned = signal.at(now);
            let origin = origin.get_or_insert(turned);
            let set = operational && dictionary.get(entries.set) != 0;
            if set && dictionary.get(entries.done) == 0 {
                *origin = turned - dictionary.get(entries.set_value) as f64;
            }
            // Beyond 32 bits it wraps.
            let counter = (turned - *origin).floor() as i64 as u32;
            *toggle = !*toggle;
            // Four counts a period; B is a quarter behind A.
            let (a, b) = (counter & 3 < 2, (1..3).contains(&(counter & 3)));
            let bits = [
                (entries.done, set),
                (entries.input_a, a),
                (entries.input_b, b),
                (entries.toggle, *toggle),
            ];
            bits.into_iter().for_each(|(id, high)| dictionary.set(id, high.into()));
            dictionary.set(entries.counter, counter.into());
        }
    }
}

/// PDOs of a terminal with this many channels: for each a fixed RxPDO of 6 bytes and a TxPDO of 10.
/// Both two-channel terminals leave index space for others between them.
#[must_use]
pub fn mapping(channels: usize) -> PdoMapping {
    mapping_of(channels, USUAL)
}

/// PDOs of an EL5101.
#[must_use]
pub fn el5101_mapping() -> PdoMapping {
    mapping_of(1, EL5101)
}

fn mapping_of(channels: usize, layout: Layout) -> PdoMapping {
    let entries = |first: u16, number: u16, list: &[(u8, DataType, &'static str)]| -> Vec<PdoEntry> {
        let index = first + CHANNEL_STEP * number;
        let of = |&(sub_index, data_type, name): &(u8, DataType, &str)| match (sub_index, data_type) {
            (0, padded) => padding(padded.bit_length().map_or(0, |bits| bits as u8)),
            _ => entry(index, sub_index, data_type, name),
        };
        list.iter().map(of).collect()
    };
    let pdo = |index, sync_manager, name: &str, number: u16, entries| Pdo {
        index,
        sync_manager: Some(sync_manager),
        fixed: true,
        name: format!("ENC {name} channel {}", number + 1),
        entries,
    };
    let numbers = 0..channels.min(MAXIMUM_CHANNELS) as u16;
    let outputs = numbers.clone().map(|number| {
        let entries = entries(layout.outputs, number, &CONTROL);
        pdo(layout.received + 2 * number, 2, "RxPDO-Map Control", number, entries)
    });
    let inputs = numbers.map(|number| {
        let entries = entries(layout.inputs, number, layout.status);
        pdo(layout.transmitted + 4 * number, 3, "TxPDO-Map Status", number, entries)
    });
    PdoMapping { outputs: outputs.collect(), inputs: inputs.collect() }
}

impl CoeApplication for Encoders {
    fn device(&self) -> &CoeDevice {
        &self.coe
    }

    fn device_mut(&mut self) -> &mut CoeDevice {
        &mut self.coe
    }

    fn work(&mut self, now: Instant, operational: bool) {
        self.count(now, operational);
    }

    fn restart(&mut self) {
        self.channels.iter_mut().for_each(|channel| channel.origin = None);
    }
}

#[cfg(test)]
mod tests {
    use ethercat::sii::Identity;

    use super::*;
    use crate::application::{Application, Level, ProcessDataLengths};

    fn encoders(signals: &[Signal]) -> Result<Encoders, DescriptionError> {
        Encoders::new(&DeviceDescription::new(Identity::default(), "device"), signals)
    }

    #[test]
    fn counter_starts_at_0_follows_wraps_and_is_set_once_per_edge() {
        let shaft = Level::default();
        shaft.set(7.0);
        let mut terminal = encoders(&[Signal::Level { level: shaft.clone(), scale: 10.0 }]).expect("one");
        assert_eq!(terminal.process_data_lengths(), ProcessDataLengths { outputs: 6, inputs: 10 });
        let mut step = |turned: f64, control: u8| {
            shaft.set(7.0 + turned);
            let mut inputs = [0; 10];
            terminal.step(Instant::EPOCH, Some(&[control, 0, 100, 0, 0, 0]), &mut inputs);
            let counter = u32::from_le_bytes([inputs[2], inputs[3], inputs[4], inputs[5]]);
            (counter, inputs[0] & 1 << 2 != 0, inputs[1] & 0b11)
        };
        assert_eq!(step(0.0, 0), (0, false, 0b01));
        assert_eq!(step(0.1, 0), (1, false, 0b11));
        assert_eq!(step(0.2, 0), (2, false, 0b10));
        assert_eq!(step(-0.05, 0), (u32::MAX, false, 0b00));
        assert_eq!(step(1.0, 0b100), (100, true, 0b01));
        assert_eq!(step(1.2, 0b100), (102, true, 0b10));
        assert_eq!(step(1.2, 0), (102, false, 0b10));
        assert_eq!(step(1.2, 0b100), (100, true, 0b01));
        // Outside Op nothing is set, and power-on starts over.
        terminal.power_on();
        let mut inputs = [0; 10];
        terminal.step(Instant::EPOCH, None, &mut inputs);
        assert_eq!(inputs[2..6], [0; 4]);
    }

    #[test]
    fn a_terminal_has_one_or_two_encoders() {
        let new = |number| encoders(&vec![Signal::Constant(0.0); number]).is_ok();
        assert_eq!([0, 1, 2, 3].map(new), [false, true, true, false]);
        assert!(encoders(&[Signal::Constant(f64::NAN)]).is_err());
        let bytes = encoders(&vec![Signal::Constant(0.0); 2]).expect("two").process_data_lengths();
        assert_eq!(bytes, ProcessDataLengths { outputs: 12, inputs: 20 });
    }
}
