//! Minimal MainDevice: one datagram a frame, in virtual time.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use core::time::Duration;

use ethercat::al::{AlControl, AlState};
use ethercat::link::Segment as _;
use ethercat::register::{self, Fmmu, FmmuDirection, SyncManager};
use ethercat::sii::crc8;
use ethercat::time::Instant;
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use onbeat_simulator::application::{Application, ProcessDataLengths, StateChange};
use onbeat_simulator::{Segment, SubDevice};

pub struct Bus {
    pub segment: Segment,
    pub now: Instant,
}

/// Reply to a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub header: DatagramHeader,
    pub data: Vec<u8>,
    pub working_counter: u16,
}

impl Reply {
    pub fn word(&self) -> u16 {
        u16::from_le_bytes(self.data[..2].try_into().unwrap())
    }
}

impl Bus {
    pub fn new(segment: Segment) -> Self {
        Self { segment, now: Instant::from_nanos(1_000_000_000_000) }
    }

    pub fn line(devices: Vec<SubDevice>) -> Self {
        Self::new(Segment::new(devices))
    }

    /// Advances `milliseconds` without a frame.
    pub fn wait(&mut self, milliseconds: u64) {
        self.now = self.now + Duration::from_millis(milliseconds);
        self.segment.advance(self.now);
    }

    /// Sends one datagram; `None` if the frame is lost.
    pub fn try_send(&mut self, command: Command, address: Address, data: &[u8]) -> Option<Reply> {
        let mut buffer = [0; 1514];
        let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
        builder.push_data(DatagramHeader::new(command, 7, address, data.len() as u16), data).unwrap();
        let length = builder.finish();
        let frame = &mut buffer[..length];
        if !self.segment.process_frame(self.now, frame) {
            return None;
        }
        let frame = Frame::parse(frame).unwrap();
        assert!(frame.source().is_processed());
        let datagram = frame.datagrams().next().unwrap();
        Some(Reply {
            header: datagram.header,
            data: datagram.data.to_vec(),
            working_counter: datagram.working_counter,
        })
    }

    pub fn send(&mut self, command: Command, address: Address, data: &[u8]) -> Reply {
        self.try_send(command, address, data).expect("the frame comes back")
    }

    /// Reads `length` bytes from `register` of the SubDevice at `position`.
    pub fn read(&mut self, position: u16, register: u16, length: usize) -> Reply {
        self.send(Command::Aprd, Address::at_position(position, register), &vec![0; length])
    }

    pub fn read_word(&mut self, position: u16, register: u16) -> u16 {
        let reply = self.read(position, register, 2);
        assert_eq!(reply.working_counter, 1, "reading {register:#06x}");
        reply.word()
    }

    /// Writes and returns the working counter.
    pub fn write(&mut self, position: u16, register: u16, data: &[u8]) -> u16 {
        self.send(Command::Apwr, Address::at_position(position, register), data).working_counter
    }

    /// Requests `state` with acknowledge, waits a millisecond and returns AL status and its code.
    pub fn request(&mut self, position: u16, state: AlState) -> (u16, u16) {
        let control = AlControl::acknowledge(state).bits().to_le_bytes();
        assert_eq!(self.write(position, register::AL_CONTROL, &control), 1);
        self.wait(1);
        self.al_status(position)
    }

    pub fn al_status(&mut self, position: u16) -> (u16, u16) {
        (self.read_word(position, register::AL_STATUS), self.read_word(position, register::AL_STATUS_CODE))
    }

    pub fn sync_manager(&mut self, position: u16, number: u8, control: u8, address: u16, length: u16) {
        let settings = SyncManager { physical_address: address, length, control, active: true };
        assert_eq!(self.write(position, SyncManager::register(number), &settings.emit()), 1);
    }

    pub fn fmmu(&mut self, position: u16, number: u16, fmmu: Fmmu) {
        assert_eq!(self.write(position, register::FMMU + 16 * number, &fmmu.emit()), 1);
    }

    /// Maps `length` bytes of outputs (SyncManager 2) and inputs (SyncManager 3) to `logical`.
    pub fn map_process_data(&mut self, position: u16, logical: u32, length: u16) {
        self.sync_manager(position, 2, SyncManager::CONTROL_OUTPUTS, 0x1100, length);
        self.sync_manager(position, 3, SyncManager::CONTROL_INPUTS, 0x1400, length);
        self.fmmu(position, 0, Fmmu::bytes(logical, 0x1100, length, FmmuDirection::Write));
        self.fmmu(position, 1, Fmmu::bytes(logical, 0x1400, length, FmmuDirection::Read));
    }
}

/// Returns each output byte plus one; in safe state it returns zeros.
#[derive(Default)]
pub struct Echo {
    pub lengths: ProcessDataLengths,
    pub refuse: Option<(AlState, ethercat::al_status_code::AlStatusCode)>,
}

impl Echo {
    pub fn new(length: usize) -> Box<Self> {
        Box::new(Self { lengths: ProcessDataLengths { outputs: length, inputs: length }, refuse: None })
    }
}

impl Application for Echo {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        self.lengths
    }

    fn enter(&mut self, change: &StateChange) -> Result<(), ethercat::al_status_code::AlStatusCode> {
        match self.refuse {
            Some((state, code)) if state == change.to => Err(code),
            _ => Ok(()),
        }
    }

    fn step(&mut self, _now: Instant, outputs: Option<&[u8]>, inputs: &mut [u8]) {
        match outputs {
            Some(outputs) => {
                inputs.iter_mut().zip(outputs).for_each(|(input, output)| *input = output.wrapping_add(1));
            }
            None => inputs.fill(0),
        }
    }
}

/// A SubDevice with `length` bytes each way, no mailbox, and an SII that holds its configuration
/// area only.
pub fn echo(length: usize) -> SubDevice {
    SubDevice::from_sii(&sii(0, 0), Echo::new(length))
}

/// The first 64 words of an SII: configuration word 0, alias, no mailbox.
pub fn sii(word0: u16, alias: u16) -> Vec<u8> {
    let mut image = vec![0; 128];
    image[0..2].copy_from_slice(&word0.to_le_bytes());
    image[8..10].copy_from_slice(&alias.to_le_bytes());
    image[14] = crc8(&image[..14]);
    image
}
