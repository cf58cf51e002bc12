//! Mailbox services of the MainDevice: in PreOp, and in Op during complete cycles.
//!
//! Replies to another MainDevice, received as behind a switch: counted separately, reported once.

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::main_device::{
    BringUpPhase, Configuration, Event, MailboxError, MailboxOutcome, MailboxRequest, MailboxService,
    MainDevice, StartupSdo, SubDeviceConfiguration,
};
use ethercat::sdo_abort::AbortCode;
use ethercat::time::Instant;
use ethercat::wire::MacAddress;
use ethercat::wire::coe::{EntryDescription, ListType, ObjectCode, ObjectDescription, ValueInfo};
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::SIMULATION;
use rig::devices::{LONG, MANY, RECORD, SHORT, parameters};
use rig::wire::{Faults, Wire};
use rig::{Replies, Rig, described, drive, drives, to_op};

use crate::rig;

const STATUSWORD: u16 = 0x6041;

/// Two drives and a SubDevice with long objects at position 1.
fn devices() -> Vec<SubDevice> {
    vec![drive(0), parameters(), drive(2)]
}

fn pre_op() -> Rig {
    let mut rig = Rig::new(Configuration::default(), devices());
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    rig
}

fn op() -> Rig {
    let mut rig = Rig::new(to_op(), devices());
    rig.run_up();
    rig
}

fn upload(index: u16, sub_index: u8) -> MailboxService {
    MailboxService::Upload { index, sub_index, complete_access: false }
}

fn download(index: u16, sub_index: u8) -> MailboxService {
    MailboxService::Download { index, sub_index, complete_access: false }
}

fn bytes(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 13 + seed) as u8).collect()
}

/// Executes one request: without cycles, or with cycles that must be complete and send at most one
/// more frame each.
fn carry(rig: &mut Rig, position: u16, service: MailboxService, data: Vec<u8>) -> MailboxOutcome {
    let request = MailboxRequest { position, service, data };
    rig.main_device.submit(request).expect("there is room for it");
    for _ in 0..20_000 {
        if let Some(outcome) = take_outcome(rig) {
            return outcome;
        }
        if rig.main_device.phase() == BringUpPhase::Op {
            let before = rig.main_device.reception().sent;
            let report = rig.cycle();
            assert!(report.all_fresh, "{report:?}");
            let sent = rig.main_device.reception().sent - before;
            assert!(sent <= u64::from(report.frames_sent) + 1, "{sent} frames in a cycle");
        } else {
            rig.pump(Duration::from_millis(1));
        }
    }
    panic!("no outcome: {:?}", rig.events)
}

fn take_outcome(rig: &mut Rig) -> Option<MailboxOutcome> {
    let place = rig.events.iter().position(|event| matches!(event, Event::Mailbox(_)))?;
    match rig.events.remove(place) {
        Event::Mailbox(outcome) => Some(outcome),
        _ => None,
    }
}

/// Value read, or the error.
fn read(rig: &mut Rig, position: u16, service: MailboxService) -> Result<Vec<u8>, MailboxError> {
    let outcome = carry(rig, position, service, Vec::with_capacity(4096));
    assert_eq!(outcome.request.service, service);
    outcome.result.map(|()| outcome.request.data)
}

fn write(rig: &mut Rig, position: u16, service: MailboxService, data: &[u8]) -> Result<(), MailboxError> {
    carry(rig, position, service, data.to_vec()).result
}

/// All mailbox services on objects of every length.
fn assert_transfers(rig: &mut Rig) {
    // Expedited.
    assert_eq!(read(rig, 1, upload(RECORD, 3)), Ok(0x3333_3333_u32.to_le_bytes().to_vec()));
    assert_eq!(write(rig, 1, download(RECORD, 2), &[0xCD, 0xAB]), Ok(()));
    assert_eq!(read(rig, 1, upload(RECORD, 2)), Ok(vec![0xCD, 0xAB]));
    // Normal, and in segments.
    for (index, length) in [(SHORT, 40), (LONG, 1000)] {
        let value = bytes(length, 5);
        assert_eq!(write(rig, 1, download(index, 0), &value), Ok(()));
        assert_eq!(read(rig, 1, upload(index, 0)), Ok(value));
    }
    // Complete access, sub-index 0 padded to 16 bits.
    let whole = |sub_index| MailboxService::Upload { index: RECORD, sub_index, complete_access: true };
    assert_eq!(read(rig, 1, whole(0)), Ok(vec![3, 0, 0x11, 0xCD, 0xAB, 0x33, 0x33, 0x33, 0x33]));
    let service = MailboxService::Download { index: RECORD, sub_index: 1, complete_access: true };
    assert_eq!(write(rig, 1, service, &[0x77, 0x22, 0x22, 0x44, 0x44, 0x44, 0x44]), Ok(()));
    assert_eq!(read(rig, 1, whole(1)), Ok(vec![0x77, 0x22, 0x22, 0x44, 0x44, 0x44, 0x44]));
    // Aborts.
    let aborted = |code| Err(MailboxError::Aborted(code));
    assert_eq!(read(rig, 1, upload(0x5FFF, 0)), aborted(AbortCode::NO_OBJECT));
    assert_eq!(read(rig, 1, upload(RECORD, 9)), aborted(AbortCode::NO_SUB_INDEX));
    assert_eq!(write(rig, 0, download(STATUSWORD, 0), &[0, 0]).err(), aborted(AbortCode::READ_ONLY).err());
}

// feature(main-device): SDO upload and download of every length, in PreOp, and in Op without a lost cycle
#[test]
fn objects_of_every_length_in_pre_op() {
    assert_transfers(&mut pre_op());
}

// feature(main-device): SDO upload and download of every length, in PreOp, and in Op without a lost cycle
#[test]
fn objects_of_every_length_in_op_during_complete_cycles() {
    assert_transfers(&mut op());
}

#[test]
fn objects_of_every_length_in_op_with_replies_one_cycle_late() {
    let mut rig = op();
    rig.replies = Replies::NextCycle;
    rig.cycle();
    assert_transfers(&mut rig);
}

// feature(running-bus): every request has an outcome, also when the bus goes down
#[test]
fn pending_requests_have_an_outcome_when_the_bus_goes_down() {
    let mut rig = op();
    for _ in 0..3 {
        let request =
            MailboxRequest { position: 1, service: upload(LONG, 0), data: Vec::with_capacity(4096) };
        rig.main_device.submit(request).expect("there is room for it");
    }
    rig.cycle();
    rig.cycle();
    assert!(take_outcome(&mut rig).is_none(), "none is done so soon");
    rig.main_device.request_state(AlState::Init);
    for _ in 0..100 {
        rig.cycle();
    }
    let outcomes: Vec<_> = std::iter::from_fn(|| take_outcome(&mut rig)).map(|it| it.result).collect();
    assert_eq!(outcomes, [Err(MailboxError::NotReady); 3]);
}

#[test]
fn start_up_values_of_every_length_are_written_in_pre_op() {
    let sdo = |index, sub_index, data| StartupSdo { index, sub_index, complete_access: false, data };
    let startup =
        vec![sdo(RECORD, 2, vec![0x34, 0x12]), sdo(SHORT, 0, bytes(40, 1)), sdo(LONG, 0, bytes(1000, 2))];
    let configuration = SubDeviceConfiguration { startup, ..SubDeviceConfiguration::default() };
    let mut rig = Rig::new(described(vec![configuration]), vec![parameters()]);
    rig.run_up();
    assert_eq!(read(&mut rig, 0, upload(RECORD, 2)), Ok(vec![0x34, 0x12]));
    assert_eq!(read(&mut rig, 0, upload(SHORT, 0)), Ok(bytes(40, 1)));
    assert_eq!(read(&mut rig, 0, upload(LONG, 0)), Ok(bytes(1000, 2)));
}

// feature(main-device): SDO information
#[test]
fn the_object_dictionary_is_described() {
    let mut rig = op();
    let mut many = MANY;
    let list = read(&mut rig, 1, MailboxService::ObjectList(ListType::ALL)).expect("a list");
    assert_eq!(list[..2], [1, 0]);
    let indices: Vec<_> = list[2..].chunks_exact(2).map(|it| u16::from_le_bytes([it[0], it[1]])).collect();
    assert!([0x1000, 0x1018, SHORT, LONG, RECORD].iter().all(|index| indices.contains(index)));
    // In several fragments, all of them in their order.
    assert!(many.all(|index| indices.contains(&index)));
    assert!(indices.windows(2).all(|pair| pair[0] < pair[1]));

    let service = MailboxService::DescribeObject { index: RECORD };
    let answer = read(&mut rig, 1, service).expect("a description");
    let object = ObjectDescription::parse(&answer).expect("one that parses");
    assert_eq!((object.index, object.maximum_sub_index, object.name), (RECORD, 3, &b"Record"[..]));
    assert_eq!(object.object_code, ObjectCode::RECORD);

    let value_info = ValueInfo::default();
    let service = MailboxService::DescribeEntry { index: RECORD, sub_index: 2, value_info };
    let answer = read(&mut rig, 1, service).expect("a description");
    let entry = EntryDescription::parse(&answer).expect("one that parses");
    assert_eq!((entry.sub_index, entry.bit_length, entry.data), (2, 16, &b"Word"[..]));

    let missing = read(&mut rig, 1, MailboxService::DescribeObject { index: 0x5FFF });
    assert_eq!(missing, Err(MailboxError::Aborted(AbortCode::NO_OBJECT)));
}

#[test]
fn requests_to_all_at_once_are_all_answered() {
    let mut rig = Rig::new(to_op(), drives(20));
    rig.run_up();
    for position in 0..20 {
        for index in [0x1000, 0x1008] {
            let data = Vec::with_capacity(100);
            let request = MailboxRequest { position, service: upload(index, 0), data };
            rig.main_device.submit(request).expect("there is room for it");
        }
    }
    for _ in 0..400 {
        assert!(rig.cycle().all_fresh);
    }
    let outcomes: Vec<_> = std::iter::from_fn(|| take_outcome(&mut rig)).collect();
    assert_eq!(outcomes.len(), 40);
    for MailboxOutcome { request, result } in outcomes {
        assert_eq!(result, Ok(()));
        if request.service == upload(0x1008, 0) {
            assert_eq!(request.data, format!("drive {}", request.position).as_bytes());
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_request() {
    let mut rig = op();
    let request = |position| MailboxRequest { position, service: upload(0x1000, 0), data: vec![1, 2, 3] };
    let refused = rig.main_device.submit(request(7)).expect_err("there are three");
    assert_eq!(refused.result, Err(MailboxError::NoSubDevice { position: 7, count: 3 }));
    assert_eq!(refused.request, request(7));

    let too_small = carry(&mut rig, 1, upload(LONG, 0), Vec::with_capacity(999));
    assert_eq!(too_small.result, Err(MailboxError::BufferTooSmall { needed: 1000, capacity: 999 }));
    // The aborted transfer does not disturb the next one.
    assert_eq!(read(&mut rig, 1, upload(RECORD, 1)), Ok(vec![0x11]));
}

#[test]
fn dead_application_times_out_and_answers_once_it_runs_again() {
    let timeout = Duration::from_millis(200);
    let mut rig =
        Rig::new(Configuration { mailbox_timeout: timeout, ..Configuration::default() }, devices());
    rig.pump_to(BringUpPhase::PreOp);
    rig.segment.sub_device_mut(1).expect("three").set_application_runs(false);
    let start = rig.now;
    let failed = read(&mut rig, 1, upload(RECORD, 1));
    assert_eq!(failed, Err(MailboxError::Timeout(timeout)));
    let waited = rig.now.since(start);
    assert!(waited >= timeout && waited < timeout * 2, "{waited:?}");
    // The others are served meanwhile.
    assert_eq!(read(&mut rig, 0, upload(0x1008, 0)), Ok(b"drive 0".to_vec()));

    rig.segment.sub_device_mut(1).expect("three").set_application_runs(true);
    assert_eq!(read(&mut rig, 1, upload(RECORD, 2)), Ok(vec![0x22, 0x22]));
    assert_eq!(read(&mut rig, 1, upload(RECORD, 1)), Ok(vec![0x11]));
}

// feature(main-device): emergencies
#[test]
fn a_drive_that_faults_sends_an_emergency() {
    let mut rig = op();
    assert_eq!(write(&mut rig, 2, download(SIMULATION, 2), &0x8611_u16.to_le_bytes()), Ok(()));
    for _ in 0..50 {
        assert!(rig.cycle().all_fresh);
    }
    let emergencies: Vec<_> = rig
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Emergency { position, error_code, .. } => Some((*position, *error_code)),
            _ => None,
        })
        .collect();
    assert_eq!(emergencies, [(2, 0x8611)]);
    assert_eq!(rig.main_device.sub_devices()[2].emergencies, 1);
}

// feature(main-device): mailbox frames lost or doubled
#[test]
fn lost_and_doubled_mailbox_frames_are_made_up_for() {
    for seed in 0..10 {
        let mut rig = pre_op();
        rig.wire = Wire::new(seed);
        rig.wire.faults = Faults { lost: 0.05, doubled: 0.1, overtaken: 0.1, ..Faults::default() };
        for round in 0..10 {
            let value = bytes(1000, round);
            assert_eq!(write(&mut rig, 1, download(LONG, 0), &value), Ok(()), "seed {seed}");
            assert_eq!(read(&mut rig, 1, upload(LONG, 0)), Ok(value), "seed {seed}");
        }
    }
}

/// Cycles in which both are received.
const CYCLES: u64 = 500;

// feature(main-device): replies to another MainDevice are counted apart and reported once
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
