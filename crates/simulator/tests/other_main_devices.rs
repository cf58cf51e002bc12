//! Replies to another MainDevice, received as behind a switch: counted separately, reported once.

use crate::rig;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{Configuration, Event, MainDevice};
use ethercat::time::Instant;
use ethercat::wire::MacAddress;
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};

use rig::{Rig, drives, to_op};

/// Cycles in which both are received.
const CYCLES: u64 = 500;

// feature(main-device): another MainDevice's replies are a kind of their own, never ours, told once
#[test]
fn other_main_device_is_reported_once_and_its_frames_ignored() {
    let mut rig = Rig::new(to_op(), drives(2));
    rig.run_up();
    let before = rig.main_device.reception();
    for cycle in 0..CYCLES {
        rig.main_device.handle_frame(rig.now, &first_reply_to(0x5EED_0000 + cycle as u32));
        assert!(rig.cycle().all_fresh);
    }
    let after = rig.main_device.reception();
    assert_eq!(after.other_main_device, before.other_main_device + CYCLES);
    assert_eq!((after.foreign, after.late, after.lost), (before.foreign, before.late, before.lost));
    let told = |event: &Event| match event {
        Event::OtherMainDevice { source, frames } => Some((*source, *frames)),
        _ => None,
    };
    let told: Vec<_> = rig.events.iter().filter_map(told).collect();
    assert_eq!(told, [(MacAddress([0x12, 0x10, 0x10, 0x10, 0x10, 0x10]), 10)]);
}

#[test]
fn equal_generations_make_main_devices_indistinguishable() {
    let mut rig = Rig::new(to_op(), drives(1));
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    assert!(rig.main_device.poll_transmit(rig.now, &mut buffer).is_some());
    rig.main_device.handle_frame(rig.now, &first_reply_to(0));
    assert_eq!(rig.main_device.reception().accepted, 1, "which is why a start has a random one");
}

/// First frame of a MainDevice that starts at this generation, as SubDevices return it. They do not
/// process it here: it would take them to Init.
fn first_reply_to(first_generation: u32) -> Vec<u8> {
    let configuration = Configuration { first_generation, ..to_op() };
    let mut other = MainDevice::new(configuration).expect("a configuration that can be run");
    let mut frame = vec![0; MAXIMUM_FRAME_LENGTH];
    let length = other.poll_transmit(Instant::EPOCH, &mut frame).expect("a first frame");
    frame.truncate(length);
    frame[SOURCE_OFFSET] |= PROCESSED_BIT;
    frame
}
