//! All datagram commands, with their working counters (ETG.1000.4, 5.4).
//!
//! Time of a frame through 64 SubDevices: printed, not asserted. A meaningful number needs
//! `cargo test --release -p onbeat-simulator --test throughput -- --nocapture`.

use core::time::Duration;
use std::time::Instant as Stopwatch;

use bus::{Bus, echo, sii};
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::link::Segment as _;
use ethercat::register::{self, Fmmu, FmmuDirection, SyncManager, dc};
use ethercat::wire::{Address, Command, DatagramHeader, Frame, FrameBuilder, MacAddress};
use onbeat_simulator::application::NoApplication;
use onbeat_simulator::{EscDescription, Segment, SubDevice};

use crate::bus;

const MEMORY: u16 = 0x1000;

fn three() -> Bus {
    let mut bus = Bus::line((0..3).map(|_| echo(2)).collect());
    for position in 0..3 {
        bus.write(position, register::STATION_ADDRESS, &(1001 + position).to_le_bytes());
        bus.write(position, MEMORY, &[1 << position, 0x80]);
    }
    bus
}

fn station(station: u16) -> Address {
    Address::Station { station, register: MEMORY }
}

const ALL: Address = Address::Broadcast { register: MEMORY };

#[test]
fn nop_and_unknown_commands_change_nothing() {
    let mut bus = three();
    for command in [Command::Nop, Command::Unknown(0x77)] {
        let reply = bus.send(command, Address::at_position(0, MEMORY), &[5, 6]);
        assert_eq!((reply.working_counter, reply.data.as_slice()), (0, &[5, 6][..]));
        assert_eq!(reply.header.address, Address::at_position(0, MEMORY).raw());
    }
}

#[test]
fn auto_increment_commands_address_by_position_and_count_up() {
    let mut bus = three();
    for position in 0..3 {
        let reply = bus.read(position, MEMORY, 2);
        assert_eq!((reply.working_counter, reply.data.as_slice()), (1, &[1 << position, 0x80][..]));
        assert_eq!(reply.header.adp(), 3_u16.wrapping_sub(position));
        assert_eq!(reply.header.ado(), MEMORY);
    }
    assert_eq!(bus.read(3, MEMORY, 2).working_counter, 0);
    assert_eq!(bus.write(1, MEMORY, &[9]), 1);
    let reply = bus.send(Command::Aprw, Address::at_position(1, MEMORY), &[7]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (3, &[9][..]));
    assert_eq!(bus.read(1, MEMORY, 1).data, [7]);
}

#[test]
fn configured_station_commands_mean_the_one_with_that_address() {
    let mut bus = three();
    let reply = bus.send(Command::Fprd, station(1002), &[0, 0]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (1, &[2, 0x80][..]));
    assert_eq!(reply.header.adp(), 1002, "nobody counts up a station address");
    assert_eq!(bus.send(Command::Fpwr, station(1003), &[0x44]).working_counter, 1);
    let reply = bus.send(Command::Fprw, station(1003), &[0x55]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (3, &[0x44][..]));
    assert_eq!(bus.send(Command::Fprd, station(999), &[0]).working_counter, 0);
}

#[test]
fn broadcasts_reach_everyone_and_reads_combine_by_or() {
    let mut bus = three();
    let reply = bus.send(Command::Brd, ALL, &[0, 0]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (3, &[7, 0x80][..]));
    assert_eq!(reply.header.adp(), 3);
    let reply = bus.send(Command::Brw, ALL, &[0x10, 0x20]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (9, &[0x17, 0xA0][..]));
    assert_eq!(bus.send(Command::Bwr, ALL, &[0, 0]).working_counter, 3);
    assert_eq!(bus.send(Command::Brd, ALL, &[0, 0]).data, [0, 0]);
}

#[test]
fn one_reads_and_all_others_write() {
    let mut bus = three();
    let reply = bus.send(Command::Frmw, station(1001), &[0, 0]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (3, &[1, 0x80][..]));
    assert_eq!(bus.read(2, MEMORY, 2).data, [1, 0x80]);
    bus.write(1, MEMORY, &[0x33]);
    let reply = bus.send(Command::Armw, Address::at_position(1, MEMORY), &[0x11]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (3, &[0x33][..]));
    assert_eq!(reply.header.adp(), 2);
    let first_byte: Vec<_> = (0..3).map(|position| bus.read(position, MEMORY, 1).data[0]).collect();
    assert_eq!(first_byte, [0x11, 0x33, 0x33], "those before the one that reads see what was sent");
}

#[test]
fn the_alias_is_an_address_once_it_is_enabled() {
    let device = |alias| SubDevice::from_sii(&sii(0, alias), Box::new(NoApplication));
    let mut bus = Bus::line(vec![device(0x100), device(0x200)]);
    assert_eq!(bus.read_word(1, register::STATION_ALIAS), 0x200);
    assert_eq!(bus.send(Command::Fprd, station(0x200), &[0]).working_counter, 0);
    bus.send(Command::Bwr, Address::Broadcast { register: register::DL_CONTROL_ALIAS }, &[1]);
    assert_eq!(bus.send(Command::Fprd, station(0x200), &[0]).working_counter, 1);
}

fn logical_three() -> Bus {
    let mut bus = three();
    for position in 0..3 {
        bus.map_process_data(position, 0x1_0000 + 2 * u32::from(position), 2);
        bus.request(position, PreOp);
        bus.request(position, SafeOp);
    }
    bus
}

// feature(simulator): every datagram command with its working counter
#[test]
fn logical_commands_count_1_for_read_1_for_write_3_for_both() {
    let mut bus = logical_three();
    let address = Address::Logical(0x1_0000);
    assert_eq!(bus.send(Command::Lwr, address, &[1, 2, 3, 4, 5, 6]).working_counter, 3);
    assert_eq!(bus.send(Command::Lrd, address, &[0; 6]).working_counter, 3);
    let reply = bus.send(Command::Lrw, address, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(reply.working_counter, 9);
    assert_eq!(reply.data, [0; 6], "outputs are not used below Op");
    // Two of the three, and unmapped bytes stay.
    let reply = bus.send(Command::Lrd, Address::Logical(0x1_0002), &[9; 8]);
    assert_eq!((reply.working_counter, reply.data.as_slice()), (2, &[0, 0, 0, 0, 9, 9, 9, 9][..]));
    assert_eq!(bus.send(Command::Lrw, Address::Logical(0x9_0000), &[0; 6]).working_counter, 0);
}

#[test]
fn a_sub_device_that_refuses_read_writes_does_not_count_them() {
    let mut description = EscDescription::default();
    description.features.bits |= 1 << 9 | 1 << 10;
    let mut bus = Bus::line(vec![SubDevice::new(description, sii(0, 0), Box::new(NoApplication))]);
    bus.write(0, MEMORY, &[3]);
    bus.fmmu(0, 0, Fmmu::bytes(0, MEMORY, 1, FmmuDirection::ReadWrite));
    assert_eq!(bus.send(Command::Lrw, Address::Logical(0), &[1]).working_counter, 0);
    assert_eq!(bus.send(Command::Lwr, Address::Logical(0), &[1]).working_counter, 1);
    assert_eq!(bus.send(Command::Lrd, Address::Logical(0), &[0]).data, [1]);
    assert_eq!(bus.send(Command::Brw, ALL, &[1]).working_counter, 0);
}

#[test]
fn a_mailbox_that_is_full_or_empty_does_not_count() {
    let mut bus = three();
    bus.sync_manager(0, 0, SyncManager::CONTROL_MAILBOX_OUT, 0x1800, 16);
    bus.sync_manager(0, 1, SyncManager::CONTROL_MAILBOX_IN, 0x1900, 16);
    assert_eq!(bus.request(0, PreOp), (2, 0));
    assert_eq!(bus.write(0, 0x1800, &[0; 16]), 1);
    assert_eq!(bus.write(0, 0x1800, &[0; 16]), 0);
    assert_eq!(bus.read(0, 0x1900, 16).working_counter, 0);
    assert_eq!(bus.read_word(0, SyncManager::register(0) + 5) & 0x08, 0x08);
}

fn errors(bus: &mut Bus, position: u16) -> Vec<u8> {
    bus.read(position, register::PROCESSING_UNIT_ERROR_COUNTER, 1).data
}

// feature(simulator): broken frames and other protocols pass as an ESC lets them
#[test]
fn dl_control_decides_on_frames_of_other_protocols() {
    let mut bus = three();
    let mut frame = [0x55_u8; 60];
    frame[6] = 0x10;
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let sent = frame;
    assert!(!bus.segment.process_frame(bus.now, &mut frame), "the default");
    for position in 0..3 {
        assert!(
            !bus.segment.process_frame(bus.now, &mut frame),
            "SubDevice {position} destroys them still"
        );
        bus.write(position, register::DL_CONTROL, &[0]);
    }
    assert!(bus.segment.process_frame(bus.now, &mut frame));
    let changed: Vec<_> = (0..60).filter(|&place| frame[place] != sent[place]).collect();
    assert_eq!((changed, frame[6]), (vec![6], 0x12), "only marked as one that passed");
    assert_eq!(errors(&mut bus, 0), [0]);
}

// feature(simulator): broken frames and other protocols pass as an ESC lets them
#[test]
fn broken_frames_are_counted_and_processed_up_to_the_error() {
    let mut bus = three();
    // Two datagrams of which the second reaches past the end: BWR of an alias, then BRD.
    let mut frame = [0_u8; 60];
    frame[12..16].copy_from_slice(&[0x88, 0xA4, 44, 0x10]);
    frame[16..30].copy_from_slice(&[8, 1, 0, 0, 0x12, 0, 2, 0x80, 0, 0, 0x34, 0x12, 0, 0]);
    frame[30..40].copy_from_slice(&[7, 2, 0, 0, 0x30, 0x01, 0xFF, 0, 0, 0]);
    assert!(bus.segment.process_frame(bus.now, &mut frame));
    assert_eq!((frame[6] & 2, &frame[28..30]), (2, &[0, 0][..]), "the alias is read-only: nobody counts");
    assert_eq!(frame[40..], [0; 20], "what reaches past the end is not processed");
    assert_eq!((errors(&mut bus, 0), errors(&mut bus, 2)), (vec![1], vec![1]));
    frame[20] = 0x10;
    assert!(bus.segment.process_frame(bus.now, &mut frame));
    assert_eq!(frame[28..30], [3, 0]);
    assert_eq!(bus.read_word(1, register::STATION_ADDRESS), 0x1234, "the first datagram was whole");

    // The length in the EtherCAT header is ignored; datagrams have their own length.
    let mut frame = [0_u8; 60];
    frame[12..16].copy_from_slice(&[0x88, 0xA4, 0xFF, 0x17]);
    frame[16..26].copy_from_slice(&[7, 1, 0, 0, 0x30, 0x01, 2, 0, 0, 0]);
    assert!(bus.segment.process_frame(bus.now, &mut frame));
    assert_eq!((frame[28], errors(&mut bus, 0)), (3, vec![2]));
    // Network variables and the mailbox gateway are EtherCAT, and ignored by an ESC.
    frame[15] = 0x40;
    frame[28] = 0;
    assert!(bus.segment.process_frame(bus.now, &mut frame));
    assert_eq!((frame[28], errors(&mut bus, 0)), (0, vec![2]));
    // Cut inside a header.
    assert!(bus.segment.process_frame(bus.now, &mut frame[..15]));
    assert_eq!(errors(&mut bus, 0), [3]);
    assert!(!bus.segment.process_frame(bus.now, &mut frame[..13]), "no Ethernet frame at all");
    assert!(!bus.segment.process_frame(bus.now, &mut [0; 1515]), "longer than any");
    let counters = bus.read(0, register::RX_ERROR_COUNTERS, 12).data;
    assert_eq!(counters, [2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn masked_events_ride_along_in_every_datagram() {
    let mut bus = three();
    assert_eq!(bus.read(0, MEMORY, 1).header.interrupt, 0);
    bus.write(2, register::ECAT_EVENT_MASK, &[0x08, 0]);
    assert_eq!(bus.read(0, MEMORY, 1).header.interrupt, 0);
    bus.request(2, PreOp);
    let _ = bus.read_word(2, register::AL_STATUS);
    bus.write(2, register::AL_CONTROL, &[1, 0]);
    bus.wait(1);
    assert_eq!(bus.read(0, MEMORY, 1).header.interrupt, 0x08);
    let _ = bus.read_word(2, register::AL_STATUS);
    assert_eq!(bus.read(0, MEMORY, 1).header.interrupt, 0);
}

#[test]
fn an_empty_segment_swallows_everything() {
    let mut bus = Bus::new(Segment::new(Vec::new()));
    assert_eq!(bus.try_send(Command::Brd, ALL, &[0]), None);
}

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
