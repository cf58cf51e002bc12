//! SubDevices of the tests: with inputs that contain their time, and also its number and the
//! outputs it took last; with objects of all lengths and no process data; and one that returns its
//! outputs as inputs.

use std::time::Duration;

use ethercat::al_status_code::AlStatusCode;
use ethercat::link::Segment as _;
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::register;
use ethercat::sii::{Identity, Image};
use ethercat::time::Instant;
use ethercat::wire::mailbox::MailboxError;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths, Replies, StateChange};
use onbeat_simulator::coe::{CoeDevice, DataType, DeviceDescription, Entry, Object, READ_WRITE, common};
use onbeat_simulator::{EscDescription, SubDevice};

use super::Rig;

struct Numbered {
    number: u64,
    lengths: ProcessDataLengths,
    taken: u64,
}

impl Application for Numbered {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.lengths
    }

    fn step(&mut self, now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            self.taken = word(outputs, 0);
        }
        for block in inputs.chunks_exact_mut(3 * STAMP) {
            let words = [now.as_nanos(), self.number, self.taken];
            for (word, bytes) in words.into_iter().zip(block.chunks_exact_mut(STAMP)) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }
}

/// Number `number`, with 8 bytes of outputs and `blocks` times 24 of inputs.
pub(crate) fn numbered(number: usize, blocks: usize) -> SubDevice {
    numbered_on(EscDescription::default(), number, blocks)
}

/// The same with another ESC.
pub(crate) fn numbered_on(esc: EscDescription, number: usize, blocks: usize) -> SubDevice {
    let lengths = ProcessDataLengths { outputs: STAMP, inputs: blocks * 3 * STAMP };
    let image = with_coe(Identity::default(), "numbered", stamped_mapping(1, blocks * 3)).image();
    let numbered = Numbered { number: number as u64, lengths, taken: 0 };
    SubDevice::new(esc, image.emit(), Box::new(numbered))
}

/// True if `inputs` were all made in one step of number `number`, for a frame sent at `sent` and
/// back by `received`.
pub(crate) fn is_of(inputs: &[u8], number: usize, sent: Instant, received: Instant) -> bool {
    let made = Instant::from_nanos(word(inputs, 0));
    let uniform = inputs.chunks_exact(3 * STAMP).all(|block| block == &inputs[..3 * STAMP]);
    uniform && word(inputs, 1) == number as u64 && made + STEP > sent && made <= received
}

/// Outputs that it had taken when it made `inputs`.
pub(crate) fn taken(inputs: &[u8]) -> u64 {
    word(inputs, 2)
}

fn word(bytes: &[u8], number: usize) -> u64 {
    let start = number * STAMP;
    u64::from_le_bytes(bytes[start..start + STAMP].try_into().expect("eight bytes"))
}

/// Enables or disables process data of the SubDevice at `position`: its outputs, its inputs.
pub(crate) fn take_part(rig: &mut Rig, position: usize, outputs: bool, inputs: bool) {
    for (fmmu, active) in (0..).zip([outputs, inputs]) {
        let register = register::FMMU + fmmu * register::fmmu::LENGTH + FMMU_ACTIVATE;
        write(rig, position, register, &[u8::from(active)]);
    }
}

/// Writes to a register without the MainDevice.
pub(crate) fn write(rig: &mut Rig, position: usize, register: u16, data: &[u8]) {
    let station = rig.main_device.sub_devices()[position].station_address;
    let mut buffer = [0; 64];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::Station { station, register };
    let header = DatagramHeader::new(Command::Fpwr, 0, address, data.len() as u16);
    builder.push_data(header, data).expect("it fits");
    let length = builder.finish();
    assert!(rig.segment.process_frame(rig.now, &mut buffer[..length]));
}

/// Activate register of an FMMU (ETG.1000.4, 6.9, Table 56).
const FMMU_ACTIVATE: u16 = 12;

/// Bytes of a stamp.
pub(crate) const STAMP: usize = 8;

pub(crate) const STAMPED: Identity =
    Identity { vendor_id: 0xFFFF_0B01, product_code: 0x57A3, revision: 1, serial: 0 };

/// Every 8 bytes of its inputs hold the instant of the step that wrote them, in ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamped {
    lengths: ProcessDataLengths,
}

impl Application for Stamped {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.lengths
    }

    fn step(&mut self, now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        for stamp in inputs.chunks_exact_mut(STAMP) {
            stamp.copy_from_slice(&now.as_nanos().to_le_bytes());
        }
    }
}

/// A mapping of this many 8-byte outputs and inputs, 32 a PDO.
pub(crate) fn stamped_mapping(outputs: usize, inputs: usize) -> PdoMapping {
    let pdos = |first: u16, sync_manager, object: u32, count: usize| {
        let entry = |number: usize| PdoEntry::from_mapping_value((object + number as u32) << 16 | 64);
        let pdo = |(index, start): (u16, usize)| Pdo {
            index,
            sync_manager: Some(sync_manager),
            fixed: true,
            name: String::new(),
            entries: (start..count.min(start + 32)).map(entry).collect(),
        };
        (first..).zip((0..count).step_by(32)).map(pdo).collect()
    };
    PdoMapping { outputs: pdos(0x1600, 2, 0x7000, outputs), inputs: pdos(0x1A00, 3, 0x6000, inputs) }
}

pub(crate) fn stamped_image(outputs: usize, inputs: usize) -> Image {
    with_coe(STAMPED, "stamped", stamped_mapping(outputs, inputs)).image()
}

/// A SubDevice with this many 8-byte outputs and inputs.
pub(crate) fn stamped(outputs: usize, inputs: usize) -> SubDevice {
    stamped_on(EscDescription::default(), outputs, inputs)
}

/// The same with another ESC.
pub(crate) fn stamped_on(esc: EscDescription, outputs: usize, inputs: usize) -> SubDevice {
    let lengths = ProcessDataLengths { outputs: outputs * STAMP, inputs: inputs * STAMP };
    let image = stamped_image(outputs, inputs).emit();
    SubDevice::new(esc, image, Box::new(Stamped { lengths }))
}

/// Instant at which all of `inputs` were made, or `None` if they differ.
pub(crate) fn stamp_of(inputs: &[u8]) -> Option<Instant> {
    let mut stamps = inputs.chunks_exact(STAMP);
    let first = stamps.next()?;
    let whole = stamps.all(|other| other == first);
    whole.then(|| Instant::from_nanos(u64::from_le_bytes(first.try_into().expect("eight bytes"))))
}

/// Largest age of a stamp at the passage of a frame: the time between two steps.
pub(crate) const STEP: Duration = onbeat_simulator::sub_device::STEP;

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

struct Echo {
    bytes: usize,
}

impl Application for Echo {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: self.bytes, inputs: self.bytes }
    }

    fn step(&mut self, _now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        if let Some(outputs) = outputs {
            inputs.copy_from_slice(outputs);
        }
    }
}

pub(crate) fn echo_image(words: usize) -> Image {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0xEC0, revision: 1, serial: 0 };
    with_coe(identity, "echo", stamped_mapping(words, words)).image()
}

/// A SubDevice with `words` times 8 bytes each way.
pub(crate) fn echo(words: usize) -> SubDevice {
    echo_on(EscDescription::default(), words)
}

/// The same with another ESC.
pub(crate) fn echo_on(esc: EscDescription, words: usize) -> SubDevice {
    SubDevice::new(esc, echo_image(words).emit(), Box::new(Echo { bytes: words * STAMP }))
}
