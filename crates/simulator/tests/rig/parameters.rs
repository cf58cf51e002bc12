//! A SubDevice with objects of all lengths and no process data.

use ethercat::al_status_code::AlStatusCode;
use ethercat::pdo::PdoMapping;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths, Replies, StateChange};
use onbeat_simulator::coe::{CoeDevice, DataType, DeviceDescription, Entry, Object, READ_WRITE, common};

/// 1000 bytes: several segments.
pub(crate) const LONG: u16 = 0x3000;
/// 40 bytes: one message.
pub(crate) const SHORT: u16 = 0x3001;
/// 8, 16 and 32 bits.
pub(crate) const RECORD: u16 = 0x3002;
/// Many bytes.
pub(crate) const MANY: core::ops::Range<u16> = 0x4000..0x4100;

struct Parameters(CoeDevice);

impl Application for Parameters {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.0.lengths()
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), AlStatusCode> {
        self.0.enter(change);
        Ok(())
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}

    fn coe(&mut self, request: &[u8], replies: &mut Replies<'_>) -> Result<(), MailboxError> {
        self.0.serve(request, replies)
    }
}

pub(crate) fn parameters() -> SubDevice {
    let image = with_coe(Identity::default(), "parameters", PdoMapping::default()).image();
    let mut dictionary = common::dictionary(&DeviceDescription::from_sii(&image));
    let bytes = |name, length: u16| {
        Entry::new(0, name, DataType::OctetString, READ_WRITE).with_bit_length(length * 8)
    };
    dictionary.add(Object::variable(LONG, bytes("Long", 1000)));
    dictionary.add(Object::variable(SHORT, bytes("Short", 40)));
    let entries = vec![
        Entry::new(1, "Byte", DataType::U8, READ_WRITE).with_value(0x11),
        Entry::new(2, "Word", DataType::U16, READ_WRITE).with_value(0x2222),
        Entry::new(3, "Double word", DataType::U32, READ_WRITE).with_value(0x3333_3333),
    ];
    dictionary.add(Object::record(RECORD, "Record", 0, entries));
    for index in MANY {
        dictionary.add(Object::variable(index, Entry::new(0, "One of many", DataType::U8, READ_WRITE)));
    }
    SubDevice::from_sii(&image.emit(), Box::new(Parameters(CoeDevice::new(dictionary))))
}
