//! Cycles of a quiet bus: one frame each, identical except for outputs, the polled mailbox and the
//! polled clock difference.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crate::rig;

use ethercat::al::AlState;
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{
    Configuration, CycleReport, Event, ExpectedIdentity, Presence, ProcessDataSource,
    SubDeviceConfiguration,
};
use ethercat::register::{SyncManager, dc, sync_manager};
use ethercat::wire::Command;
use ethercat::wire::frame::{DatagramPlace, places};
use onbeat_simulator::application::digital::{DigitalInputs, Wires};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::terminal;
use onbeat_simulator::{EscDescription, SubDevice, TerminalModel};

use rig::{DRIVE, PERIOD, Rig, described, drive, drives, to_op};

/// A bus of two drives in Op, in cycles of one frame and nothing else: after a generation number
/// (bytes 16 to 32) the AL status of all (to 46), a mailbox (to 59) and process data.
fn quiet() -> Rig {
    let mut rig = Rig::new(Configuration { distributed_clocks: false, ..to_op() }, drives(2));
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    assert_eq!((rig.cycle().frames_sent, rig.main_device.in_flight()), (1, 0));
    rig
}

/// One cycle with a spoiled reply.
fn spoiled(rig: &mut Rig, spoil: impl Fn(&mut [u8]) + 'static) -> CycleReport {
    rig.tamper = Some(Box::new(spoil));
    let report = rig.cycle();
    rig.tamper = None;
    report
}

// feature(main-device): a quiet cycle compares all that any other does
#[test]
fn a_spoiled_reply_in_a_quiet_cycle_is_none() {
    let flips = [
        (16, 0x01, "command of the generation number"),
        (17, 0x01, "index of the frame"),
        (26, 0x01, "generation number"),
        (32, 0x01, "command of the AL status"),
        (33, 0x01, "index of the AL status"),
        (36, 0x01, "register of the AL status"),
        (48, 0x01, "address of the SubDevice with the mailbox"),
        (59, 0x01, "command of process data"),
        (61, 0x01, "logical address"),
        (65, 0x01, "length of process data"),
        (12, 0x01, "EtherType"),
        (6, 0x02, "mark of a SubDevice"),
    ];
    for (byte, flip, what) in flips {
        let mut rig = quiet();
        let (before, inputs) = (rig.main_device.reception(), rig.main_device.inputs(0).to_vec());
        let report = spoiled(&mut rig, move |bytes| {
            bytes[byte] ^= flip;
            // What is taken shows.
            bytes[71..].iter_mut().for_each(|it| *it ^= 0x55);
        });
        let after = rig.main_device.reception();
        assert_eq!((report.frames_lost, report.all_fresh), (1, false), "{what}: {report:?}");
        assert_eq!((after.accepted, after.dropped()), (before.accepted, before.dropped() + 1), "{what}");
        assert_eq!(rig.main_device.inputs(0), inputs, "{what}");
        assert!(!rig.main_device.inputs_fresh(0), "{what}");
    }
}

// feature(main-device): a quiet cycle compares all that any other does
#[test]
fn the_reply_of_the_cycle_before_is_none_in_a_quiet_cycle() {
    let mut rig = quiet();
    let before = Rc::new(RefCell::new(Vec::new()));
    let kept = Rc::clone(&before);
    assert!(spoiled(&mut rig, move |bytes| bytes.clone_into(&mut kept.borrow_mut())).all_fresh);
    let accepted = rig.main_device.reception().accepted;
    let report = spoiled(&mut rig, move |bytes| bytes.copy_from_slice(&before.borrow()));
    assert_eq!((report.frames_lost, report.all_fresh), (1, false));
    let reception = rig.main_device.reception();
    assert_eq!((reception.accepted, reception.duplicate), (accepted, 1));
}

// feature(main-device): a quiet cycle compares all that any other does
#[test]
fn a_wrong_working_counter_or_status_in_a_quiet_cycle_is_seen() {
    let mut rig = quiet();
    let (accepted, inputs) = (rig.main_device.reception().accepted, rig.main_device.inputs(0).to_vec());
    let report = spoiled(&mut rig, |bytes| {
        let last = bytes.len() - 2;
        bytes[69..last].iter_mut().for_each(|it| *it ^= 0x55);
        bytes[last] -= 1;
    });
    assert_eq!((report.working_counter_errors, report.all_fresh), (1, false), "{report:?}");
    assert_eq!(rig.main_device.reception().accepted, accepted + 1);
    assert_eq!(rig.main_device.inputs(0), inputs);
    // Another state, no answer, or mail: each is examined in a separate frame.
    for (byte, value) in [(42, 0x04), (44, 0x01), (56, 0x08)] {
        let mut rig = quiet();
        let sent = rig.main_device.reception().sent;
        spoiled(&mut rig, move |bytes| bytes[byte] = value);
        rig.cycle();
        assert!(rig.main_device.reception().sent > sent + 2, "byte {byte}");
    }
}

/// Station addresses at which this register is read, in the frames of `cycles` cycles.
fn asked(rig: &mut Rig, register: u16, cycles: usize) -> Vec<u16> {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&asked);
    rig.tamper = Some(Box::new(move |frame| {
        for place in places(frame).filter(|it| it.header.command == Command::Fprd) {
            let address = place.header.address;
            if address >> 16 == u32::from(register) {
                noted.borrow_mut().push(address as u16);
            }
        }
    }));
    for _ in 0..cycles {
        let report = rig.cycle();
        assert_eq!((report.frames_sent, report.all_fresh), (1, true), "{report:?}");
    }
    rig.tamper = None;
    asked.take()
}

fn terminal() -> SubDevice {
    let image = terminal::image(TerminalModel::El1008, 0);
    let inputs = DigitalInputs::new(8, Wires::new()).unwrap();
    SubDevice::new(EscDescription::of(None, Some(&image)), image.emit(), Box::new(inputs))
}

// feature(main-device): each cycle reads one mailbox and one clock, in turn
#[test]
fn sub_device_without_mailbox_is_not_polled() {
    let mut rig = Rig::new(to_op(), vec![terminal(), drive(1), terminal(), drive(2), drive(3)]);
    rig.run_up();
    for _ in 0..50 {
        rig.cycle();
    }
    let mailbox = SyncManager::register(1) + sync_manager::STATUS_OFFSET;
    let turns = asked(&mut rig, mailbox, 7);
    assert_eq!(turns.len(), 7, "in each cycle: {turns:X?}");
    let first = turns.iter().position(|&it| it == 0x1002).unwrap();
    assert_eq!(turns[first..first + 4], [0x1002, 0x1004, 0x1005, 0x1002], "{turns:X?}");
    let clocks: Vec<_> = rig.main_device.sub_devices().iter().filter(|it| it.clock.is_some()).collect();
    let stations: Vec<_> = clocks.iter().map(|it| it.station_address).collect();
    let turns = asked(&mut rig, dc::SYSTEM_TIME_DIFFERENCE, stations.len());
    let mut sorted = turns.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, stations, "each once: {turns:X?}");
    assert!(rig.main_device.take_reference_sample().is_some(), "the reference clock's time, in each cycle");
    assert!(rig.main_device.take_reference_sample().is_none());
    rig.cycle();
    assert!(rig.main_device.take_reference_sample().is_some());
}

/// Without its time the others were sent zero: the next frame reads it alone.
#[test]
fn reference_clock_missing_its_time_is_read_separately() {
    let mut rig = Rig::new(to_op(), drives(2));
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    let reads = |frame: &[u8], command| {
        let is_time = |it: &DatagramPlace| it.header.address >> 16 == u32::from(dc::SYSTEM_TIME);
        places(frame).find(|it| is_time(it) && it.header.command == command)
    };
    let commands = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&commands);
    rig.tamper = Some(Box::new(move |frame| {
        let handed_on = reads(frame, Command::Frmw);
        noted.borrow_mut().push(handed_on.is_some());
        if let (4, Some(place)) = (noted.borrow().len(), handed_on) {
            frame[place.data()].fill(0);
        }
    }));
    for _ in 0..8 {
        assert!(rig.cycle().all_fresh);
    }
    assert_eq!(*commands.borrow(), [true, true, true, true, false, true, true, true]);
}

#[test]
fn steered_reference_clock_receives_the_time_every_cycle() {
    let mut rig = Rig::new(Configuration { steers_reference: true, ..to_op() }, drives(2));
    rig.run_up();
    let times = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&times);
    rig.tamper = Some(Box::new(move |frame| {
        let is_time = |it: &DatagramPlace| {
            it.header.command == Command::Fpwr && it.header.address >> 16 == u32::from(dc::SYSTEM_TIME)
        };
        let place = places(frame).find(is_time).expect("in each frame with process data");
        noted.borrow_mut().push(u64::from_le_bytes(frame[place.data()].try_into().unwrap()));
    }));
    for _ in 0..50 {
        assert!(rig.cycle().all_fresh);
    }
    assert_eq!(times.borrow().len(), 50);
    assert!(times.borrow().array_windows().all(|[before, next]| next - before == 1_000_000), "{times:?}");
}

/// Even if one often leaves and returns, none is left out.
#[test]
fn mailbox_polling_resumes_where_it_was_after_a_return() {
    let mut rig = Rig::new(to_op(), drives(5));
    rig.run_up();
    (0..50).for_each(|_| _ = rig.cycle());
    let turns = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&turns);
    let mailbox = u32::from(SyncManager::register(1) + sync_manager::STATUS_OFFSET);
    rig.tamper = Some(Box::new(move |frame| {
        let all: Vec<_> = places(frame).map(|it| it.header).collect();
        let asks = all.iter().filter(|it| it.command == Command::Fprd && it.address >> 16 == mailbox);
        if all.iter().any(|it| it.command == Command::Lrw) {
            noted.borrow_mut().extend(asks.map(|it| it.address as u16 - 0x1001));
        }
    }));
    for number in 0..5 {
        rig.segment.power_cycle(4);
        let is_back = |it: &Event| matches!(it, Event::Recovered { position: 4, .. });
        assert!((0..3000).any(|_| {
            rig.cycle();
            rig.events.drain(..).any(|it| is_back(&it))
        }));
        (0..20 + number).for_each(|_| _ = rig.cycle());
    }
    let turns = turns.borrow();
    assert!(turns.len() > 50, "{turns:?}");
    // A frame on its way when the power fails is lost.
    assert!(turns.windows(2).all(|it| matches!((it[1] + 5 - it[0]) % 5, 1 | 2)), "{turns:?}");
}

#[test]
fn quiet_cycle_reports_received_working_counters() {
    let mut rig = quiet();
    let counters = |rig: &Rig| -> Vec<_> { rig.main_device.working_counters().collect() };
    let whole = counters(&rig);
    assert_eq!(whole.iter().map(|it| (it.expected, it.received)).collect::<Vec<_>>(), [(6, Some(6))]);
    rig.send_cycle();
    assert_eq!(counters(&rig)[0].received, None, "not back yet");
    assert!(!rig.main_device.inputs_fresh(0) && !rig.main_device.outputs_taken(0));
    assert!(rig.take_replies().all_fresh);
    assert_eq!(counters(&rig), whole);
    spoiled(&mut rig, |bytes| *bytes.iter_mut().nth_back(1).unwrap() = 5);
    assert_eq!(counters(&rig)[0].received, Some(5));
}

#[test]
fn a_cycle_that_sends_nothing_reports_nothing() {
    let mut rig = quiet();
    rig.main_device.begin_cycle(rig.now);
    let report = rig.main_device.end_cycle(rig.now);
    assert_eq!((report.frames_sent, report.all_fresh), (0, false), "{report:?}");
    assert!(!rig.main_device.inputs_fresh(0));
    rig.cycle();
    assert!(rig.cycle().all_fresh);
}

#[test]
fn a_lower_target_ends_quiet_cycles() {
    let mut rig = quiet();
    rig.main_device.request_state(AlState::PreOp);
    let report = rig.cycle();
    assert_eq!((report.frames_sent, report.all_fresh), (0, false), "{report:?}");
    rig.main_device.request_state(AlState::Op);
    rig.cycle();
    assert!(rig.cycle().all_fresh);
}

#[test]
fn lower_target_before_the_frame_ends_quiet_cycles() {
    let mut rig = quiet();
    rig.main_device.begin_cycle(rig.now);
    rig.main_device.request_state(AlState::PreOp);
    rig.transmit();
    rig.pass_to(rig.now + PERIOD, true);
    assert!(rig.main_device.end_cycle(rig.now).all_fresh);
    let report = rig.cycle();
    assert_eq!((report.frames_sent, report.all_fresh), (0, false), "{report:?}");
    assert!(!rig.main_device.inputs_fresh(0));
}

/// Bytes of the longest frame without process data that is sent in a cycle which reads the error
/// counters of all.
fn longest_service(rig: &mut Rig) -> usize {
    let longest = Rc::new(RefCell::new(0));
    let noted = Rc::clone(&longest);
    rig.tamper = Some(Box::new(move |frame| {
        if places(frame).all(|it| it.header.command != Command::Lrw) {
            let mut longest = noted.borrow_mut();
            *longest = frame.len().max(*longest);
        }
    }));
    rig.main_device.read_error_counters();
    rig.cycle();
    rig.tamper = None;
    while rig.main_device.reads_error_counters() {
        rig.cycle();
    }
    (0..10).for_each(|_| _ = rig.cycle());
    longest.take()
}

/// Frames next to process data have to end before the next cycle's frame.
#[test]
fn a_cycle_begun_twice_leaves_no_more_room_than_any_other() {
    let period = Duration::from_micros(200);
    let configuration = Configuration { period, distributed_clocks: false, ..to_op() };
    let mut rig = Rig::new(configuration, drives(40));
    rig.period = period;
    rig.run_up();
    (0..200).for_each(|_| _ = rig.cycle());
    let usual = longest_service(&mut rig);
    assert!(usual > 1000, "{usual}");
    rig.main_device.begin_cycle(rig.now);
    assert_eq!(longest_service(&mut rig), usual);
}

/// A late SubDevice that does not reach Op: its mail about that is read.
#[test]
fn mail_of_one_that_could_not_join_is_fetched() {
    let mut configured = vec![SubDeviceConfiguration::default(); 2];
    configured[1] = SubDeviceConfiguration {
        name: "late".into(),
        identity: Some(ExpectedIdentity {
            vendor_id: DRIVE.vendor_id,
            product_code: DRIVE.product_code,
            revision: None,
        }),
        process_data: ProcessDataSource::Explicit(default_mapping()),
        presence: Presence::Optional,
        ..Default::default()
    };
    let mut rig = Rig::new(described(configured), vec![terminal(), drive(1)]);
    rig.segment.power_off(1);
    rig.run_up();
    let late = |rig: &mut Rig, change: &dyn Fn(&mut SubDevice)| {
        rig.segment.sub_device_mut(1).into_iter().for_each(change);
    };
    late(&mut rig, &|it| it.refuse_state(Some((AlState::SafeOp, AlStatusCode::NO_SYNC))));
    rig.segment.power_on(1);
    let happens = |rig: &mut Rig, what: fn(&Event) -> bool| {
        (0..3000).any(|_| {
            rig.cycle();
            rig.events.drain(..).any(|it| what(&it))
        })
    };
    assert!(happens(&mut rig, |it| matches!(it, Event::NotRecovered { position: 1, .. })));
    late(&mut rig, &|it| it.servo_mut().into_iter().for_each(|it| it.raise_fault(0, 0x7500)));
    let is_told = |it: &Event| matches!(it, Event::Emergency { position: 1, error_code: 0x7500, .. });
    assert!(happens(&mut rig, is_told));
}

/// Two drives in quiet cycles, and an optional one that is absent.
fn quiet_with_one_absent() -> Rig {
    let mut configured: Vec<_> = (0..3)
        .map(|number| SubDeviceConfiguration {
            name: format!("drive {number}"),
            process_data: ProcessDataSource::Explicit(default_mapping()),
            ..Default::default()
        })
        .collect();
    configured[2].presence = Presence::Optional;
    configured[2].identity = Some(ExpectedIdentity {
        vendor_id: DRIVE.vendor_id,
        product_code: DRIVE.product_code,
        revision: None,
    });
    let mut rig = Rig::new(described(configured), drives(3));
    rig.segment.power_off(2);
    rig.run_up();
    (0..500).for_each(|_| _ = rig.cycle());
    rig
}

/// With one absent the participation of each is known: after a lost frame it is determined again.
#[test]
fn present_sub_devices_resume_after_lost_frame_while_one_is_off() {
    let mut rig = quiet_with_one_absent();
    let taking_part = |rig: &Rig| [0, 1, 2].map(|it| rig.main_device.exchanged(it));
    assert_eq!(taking_part(&rig), [true, true, false]);
    let report = spoiled(&mut rig, |bytes| bytes[26] ^= 1);
    assert_eq!((report.frames_lost, taking_part(&rig)), (1, [false; 3]));
    for cycle in 0..5 {
        let report = rig.cycle();
        assert!(report.all_fresh, "in cycle {cycle}: {report:?}");
        assert_eq!(taking_part(&rig), [true, true, false], "in cycle {cycle}");
    }
}
