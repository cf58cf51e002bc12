//! Servo drives behind their ESCs: remapped over the mailbox, enabled and moved over process data,
//! and their reaction when frames stop.

use crate::bus;

use bus::Bus;
use ethercat::al::AlState::{Op, PreOp, SafeOp};
use ethercat::cia402::{State, Statusword};
use ethercat::register::{Fmmu, FmmuDirection, SyncManager};
use ethercat::sii::Identity;
use ethercat::wire::coe::{CoeMessage, Emergency, SdoPayload, SdoRequest, SdoResponse};
use ethercat::wire::mailbox::{self, Header, MailboxType};
use ethercat::wire::{Address, Command};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::{COMMUNICATION_LOSS, default_mapping};
use onbeat_simulator::application::sii::{MAILBOX_SIZE, with_coe};
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::sub_device::STEP;

/// Addresses of the mailboxes and the process data of the default mapping in `with_coe`.
const MAILBOX_OUT: u16 = 0x1000;
const MAILBOX_IN: u16 = 0x1080;
const OUTPUTS: u16 = 0x1100;
const INPUTS: u16 = 0x1280;

/// Bytes of each direction after the mapping below: word, long, byte.
const LENGTH: u16 = 7;

const DRIVES: u16 = 2;

fn drive(number: u32) -> SubDevice {
    let identity = Identity { vendor_id: 0xFFFF_0B01, product_code: 0x0402, revision: 1, serial: number };
    let name = format!("drive number {number} of this test");
    let image = with_coe(identity, &name, default_mapping()).image();
    let description = ServoDescription {
        initial_position: f64::from(number),
        ..ServoDescription::new(DeviceDescription::from_sii(&image))
    };
    let drive = ServoDrive::new(&description).expect("the default mapping fits");
    SubDevice::from_sii(&image.emit(), Box::new(drive))
}

/// Both drives in PreOp with open mailboxes.
fn pre_op() -> Bus {
    let mut bus = Bus::line((1..=u32::from(DRIVES)).map(drive).collect());
    for position in 0..DRIVES {
        let (out, inward) = (SyncManager::CONTROL_MAILBOX_OUT, SyncManager::CONTROL_MAILBOX_IN);
        bus.sync_manager(position, 0, out, MAILBOX_OUT, MAILBOX_SIZE);
        bus.sync_manager(position, 1, inward, MAILBOX_IN, MAILBOX_SIZE);
        assert_eq!(bus.request(position, PreOp), (2, 0));
    }
    bus
}

fn exchange(bus: &mut Bus, position: u16, request: &SdoRequest<'_>) -> Vec<u8> {
    let mut payload = [0; MAILBOX_SIZE as usize - mailbox::HEADER_LENGTH];
    let length = request.emit(&mut payload).expect("it fits");
    let mut message = [0; MAILBOX_SIZE as usize];
    // Counter 0: not numbered, so no request counts as a repeat of the previous one.
    mailbox::emit(MailboxType::Coe, 0, &payload[..length], &mut message).expect("it fits");
    assert_eq!(bus.write(position, MAILBOX_OUT, &message), 1);
    bus.wait(1);
    receive(bus, position).expect("a reply")
}

fn receive(bus: &mut Bus, position: u16) -> Option<Vec<u8>> {
    let reply = bus.read(position, MAILBOX_IN, usize::from(MAILBOX_SIZE));
    (reply.working_counter == 1).then(|| {
        let (header, payload) = Header::parse(&reply.data).expect("a mailbox message");
        assert_eq!(header.kind, MailboxType::Coe);
        payload.to_vec()
    })
}

fn download(bus: &mut Bus, position: u16, index: u16, sub_index: u8, data: &[u8]) {
    let payload = SdoPayload::fitting(data, usize::from(MAILBOX_SIZE) - mailbox::HEADER_LENGTH);
    let complete_access = index < 0x2000;
    let request = SdoRequest::InitiateDownload { index, sub_index, complete_access, payload };
    let reply = exchange(bus, position, &request);
    let expected = SdoResponse::InitiateDownload { index, sub_index, complete_access };
    assert_eq!(CoeMessage::parse(&reply), Ok(CoeMessage::SdoResponse(expected)));
}

/// Mapped to controlword, target velocity, mode; statusword, actual position, mode: 7 bytes each
/// way.
fn operational() -> Bus {
    let mut bus = pre_op();
    for position in 0..DRIVES {
        for (index, entries) in [
            (0x1600, [0x6040_0010_u32, 0x60FF_0020, 0x6060_0008]),
            (0x1A00, [0x6041_0010, 0x6064_0020, 0x6061_0008]),
        ] {
            let mut object = vec![3, 0];
            object.extend(entries.into_iter().flat_map(u32::to_le_bytes));
            let assignment = if index == 0x1600 { 0x1C12 } else { 0x1C13 };
            download(&mut bus, position, assignment, 0, &[0, 0]);
            download(&mut bus, position, index, 0, &object);
            download(
                &mut bus,
                position,
                assignment,
                0,
                &[1, 0, 0, if index == 0x1600 { 0x16 } else { 0x1A }],
            );
        }
        bus.sync_manager(position, 2, SyncManager::CONTROL_OUTPUTS, OUTPUTS, LENGTH);
        bus.sync_manager(position, 3, SyncManager::CONTROL_INPUTS, INPUTS, LENGTH);
        let logical = 0x1_0000 + u32::from(position * LENGTH);
        bus.fmmu(position, 0, Fmmu::bytes(logical, OUTPUTS, LENGTH, FmmuDirection::Write));
        bus.fmmu(position, 1, Fmmu::bytes(logical, INPUTS, LENGTH, FmmuDirection::Read));
        assert_eq!(bus.request(position, SafeOp), (4, 0));
    }
    cycle(&mut bus, &[(0, 0); DRIVES as usize]);
    for position in 0..DRIVES {
        assert_eq!(bus.request(position, Op), (8, 0));
    }
    bus
}

/// Runs one cycle of a millisecond: controlword and target velocity out; state and position back.
fn cycle(bus: &mut Bus, commands: &[(u16, i32)]) -> Vec<(Option<State>, i32)> {
    const CSV: u8 = 9;
    let mut data = Vec::new();
    for (controlword, velocity) in commands {
        data.extend(controlword.to_le_bytes());
        data.extend(velocity.to_le_bytes());
        data.push(CSV);
    }
    let reply = bus.send(Command::Lrw, Address::Logical(0x1_0000), &data);
    assert_eq!(reply.working_counter, 3 * DRIVES);
    bus.wait(1);
    let feedback = |bytes: &[u8]| {
        let statusword = Statusword(u16::from_le_bytes([bytes[0], bytes[1]]));
        (statusword.state(), i32::from_le_bytes([bytes[2], bytes[3], bytes[4], bytes[5]]))
    };
    reply.data.chunks(usize::from(LENGTH)).map(feedback).collect()
}

fn enabled() -> Bus {
    let mut bus = operational();
    for controlword in [0x06, 0x07, 0x0F] {
        for _ in 0..6 {
            cycle(&mut bus, &[(controlword, 0); 2]);
        }
    }
    let states: Vec<_> = cycle(&mut bus, &[(0x0F, 0); 2]).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, [Some(State::OperationEnabled); 2]);
    bus
}

#[test]
fn the_name_comes_through_the_mailbox() {
    let mut bus = pre_op();
    let request = SdoRequest::InitiateUpload { index: 0x1008, sub_index: 0, complete_access: false };
    let reply = exchange(&mut bus, 1, &request);
    let Ok(SdoResponse::InitiateUpload { payload, .. }) = SdoResponse::parse(&reply) else {
        panic!("{reply:?}")
    };
    assert_eq!(payload.data(), b"drive number 2 of this test");
}

#[test]
fn a_length_other_than_the_mapping_is_refused() {
    let mut bus = pre_op();
    bus.sync_manager(0, 2, SyncManager::CONTROL_OUTPUTS, OUTPUTS, LENGTH);
    bus.sync_manager(0, 3, SyncManager::CONTROL_INPUTS, INPUTS, 12);
    assert_eq!(bus.request(0, SafeOp), (0x12, 0x001D));
}

#[test]
fn remapped_drives_turn_as_commanded() {
    let mut bus = enabled();
    let start = cycle(&mut bus, &[(0x0F, 0); 2]);
    let mut end = start.clone();
    for _ in 0..=1000 {
        end = cycle(&mut bus, &[(0x0F, 1 << 20), (0x0F, -(1 << 19))]);
    }
    let moved: Vec<_> = start.iter().zip(&end).map(|(start, end)| end.1 - start.1).collect();
    // A second at one revolution a second, and at half of one backwards; a few milliseconds to get
    // there.
    assert!((moved[0] - (1 << 20)).abs() < 1 << 14, "{moved:?}");
    assert!((moved[1] + (1 << 19)).abs() < 1 << 14, "{moved:?}");
}

#[test]
fn when_frames_stop_the_drives_fault_and_say_so() {
    let mut bus = enabled();
    for _ in 0..100 {
        cycle(&mut bus, &[(0x0F, 1 << 20); 2]);
    }
    bus.wait(500);
    for position in 0..DRIVES {
        assert_eq!(bus.al_status(position), (0x14, 0x001B), "the process data watchdog");
        let inputs = bus.read(position, INPUTS, usize::from(LENGTH));
        assert_eq!(Statusword(inputs.word()).state(), Some(State::Fault));
        let message = receive(&mut bus, position).expect("an emergency");
        let expected = Emergency { error_code: COMMUNICATION_LOSS, error_register: 0x11, data: [0; 5] };
        assert_eq!(Emergency::parse(&message), Ok(expected));
    }
}

// feature(simulator): what a servo drive took, every step
#[test]
fn the_record_holds_every_step_and_what_the_drive_took_in_it() {
    let mut bus = operational();
    let record = bus.segment.sub_device_mut(1).and_then(SubDevice::servo_mut).expect("a drive").record();
    let begin = bus.now;
    let commands = [(0x06, 0), (0x07, 0), (0x0F, 0), (0x0F, 1000), (0x0F, -7)];
    for (controlword, velocity) in commands {
        for _ in 0..3 {
            cycle(&mut bus, &[(0, 0), (controlword, velocity)]);
        }
    }
    let taken = record.taken();
    assert_eq!(taken.len(), 5 * 3 * 4, "one for each step of 250 us");
    for (step, (taken, next)) in taken.iter().zip(&taken[1..]).enumerate() {
        assert_eq!(next.now.since(taken.now), STEP, "step {step}");
    }
    assert_eq!(taken[0].now.since(begin), STEP);
    for (taken, expected) in taken.chunks(12).zip(commands) {
        assert!(
            taken.iter().all(|it| it.operational && (it.controlword.0, it.target_velocity) == expected)
        );
    }
    assert!(!taken[0].follows());
    let last = record.last().expect("the newest");
    assert!(last.follows() && last.state == State::OperationEnabled, "{last:?}");
    assert_eq!(taken.last(), Some(&last));

    bus.request(1, SafeOp);
    let last = record.last().expect("the newest");
    assert_eq!((last.operational, last.controlword.0, last.follows()), (false, 0, false));
}
