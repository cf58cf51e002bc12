//! Time of a frame through 64 SubDevices: printed, not asserted. A meaningful number needs
//! `cargo test --release -p onbeat-simulator --test throughput -- --nocapture`.

use crate::bus;

use core::time::Duration;
use std::time::Instant as Stopwatch;

use bus::{Bus, echo};
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::link::Segment as _;
use ethercat::register::{self, dc};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};

const SUB_DEVICES: u16 = 64;
const BYTES: u16 = 12;
const FRAMES: u32 = 2_000;

#[test]
fn sixty_four_sub_devices_at_four_kilohertz() {
    let mut bus = Bus::line((0..SUB_DEVICES).map(|_| echo(usize::from(BYTES))).collect());
    for position in 0..SUB_DEVICES {
        bus.write(position, register::STATION_ADDRESS, &(0x1000 + position).to_le_bytes());
        bus.map_process_data(position, u32::from(position * BYTES), BYTES);
        bus.request(position, PreOp);
        bus.request(position, SafeOp);
    }
    one_cycle(&mut bus);
    bus.send(Command::Bwr, Address::Broadcast { register: register::AL_CONTROL }, &[Op.number(), 0]);
    (0..4).for_each(|_| _ = one_cycle(&mut bus));
    let begin = Stopwatch::now();
    for _ in 0..FRAMES {
        assert_eq!(one_cycle(&mut bus), Op.number());
    }
    let each = begin.elapsed() / FRAMES;
    println!(
        "{SUB_DEVICES} SubDevices, {BYTES} bytes each way, four datagrams a frame: {each:?} a frame, {:.1} % of a core at 4 kHz",
        each.as_secs_f64() * 4_000.0 * 100.0
    );
}

/// Runs one cycle of 250 us; returns the AL states of all SubDevices, combined by OR.
fn one_cycle(bus: &mut Bus) -> u8 {
    let mut buffer = [0; 1514];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let mut push = |command, address, length| {
        builder.push(DatagramHeader::new(command, 0, address, length)).unwrap();
    };
    push(Command::Frmw, Address::Station { station: 0x1000, register: dc::SYSTEM_TIME }, 8);
    push(Command::Lrw, Address::Logical(0), SUB_DEVICES * BYTES);
    push(Command::Brd, Address::Broadcast { register: register::AL_STATUS }, 2);
    push(Command::Fprd, Address::Station { station: 0x1010, register: dc::SYSTEM_TIME_DIFFERENCE }, 4);
    let length = builder.finish();
    bus.now = bus.now + Duration::from_micros(250);
    assert!(bus.segment.process_frame(bus.now, &mut buffer[..length]));
    let frame = Frame::parse(&buffer[..length]).unwrap();
    let expected = [SUB_DEVICES, 3 * SUB_DEVICES, SUB_DEVICES, 1];
    assert!(frame.datagrams().map(|datagram| datagram.working_counter).eq(expected));
    frame.datagrams().nth(2).unwrap().data[0]
}
