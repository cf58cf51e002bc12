//! A SubDevice with inputs that contain their time, its number, and the outputs it took last.

use ethercat::link::Segment as _;
use ethercat::register;
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths};
use onbeat_simulator::{EscDescription, SubDevice};

use super::Rig;
use super::stamped::{STAMP, STEP, stamped_mapping};

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
