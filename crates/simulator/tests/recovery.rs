//! SubDevices that leave Op, or vanish and come back, are brought to Op again while the others stay
//! there.

use crate::rig;

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::link::Segment as _;
use ethercat::main_device::{
    BringUpPhase, Configuration, Event, MailboxRequest, MailboxService, ProcessDataSource, Replies,
    StartupSdo, SubDeviceConfiguration, Sync0,
};
use ethercat::register;
use ethercat::sii::Identity;
use ethercat::wire::{Address, Command, DatagramHeader, FrameBuilder, MacAddress};
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use proptest::prelude::*;

use rig::devices::numbered;
use rig::{DRIVE, PERIOD, Rig, described, drives, to_op};

/// Cycles in which any of them is back, on either way.
const SOON: usize = 1500;

/// A drive with all that is configured: start-up SDO, mapping, SYNC0.
fn configured() -> SubDeviceConfiguration {
    SubDeviceConfiguration {
        process_data: ProcessDataSource::Explicit(default_mapping()),
        startup: vec![StartupSdo { index: 0x6060, sub_index: 0, complete_access: false, data: vec![8] }],
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::ZERO }),
        ..SubDeviceConfiguration::default()
    }
}

fn in_op(configuration: Configuration, devices: Vec<SubDevice>) -> Rig {
    let mut rig = Rig::new(configuration, devices);
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    rig.events.clear();
    rig
}

fn drives_in_op(count: usize) -> Rig {
    in_op(described(vec![configured(); count]), drives(count as u32))
}

/// Cycles until all are in Op again and exchange data; the others do so in every cycle but the
/// first `blind`.
fn cycles_until_all_are_back(rig: &mut Rig, gone: &[usize], blind: usize) -> usize {
    let count = rig.main_device.sub_devices().len();
    for cycle in 0..SOON {
        rig.cycle();
        for position in (0..count).filter(|position| !gone.contains(position)) {
            assert!(cycle < blind || rig.main_device.exchanged(position), "{position} in cycle {cycle}");
        }
        let recovered = rig.events.iter().filter(|it| matches!(it, Event::Recovered { .. })).count();
        if recovered >= gone.len() && (0..count).all(|it| rig.main_device.exchanged(it)) {
            assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
            return cycle;
        }
    }
    let states: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.al_status).collect();
    panic!("not back after {SOON} cycles: {states:?}, {:?}", rig.events);
}

/// Positions that returned, and whether they were reconfigured, in the order of positions.
fn recovered(rig: &Rig) -> Vec<(u16, bool)> {
    let mut found: Vec<_> = rig
        .events
        .iter()
        .filter_map(|event| match *event {
            Event::Recovered { position, anew } => Some((position, anew)),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found
}

// feature(main-device): a SubDevice that lost its power is addressed, checked, configured and in Op again while the others exchange data in every cycle
#[test]
fn power_cycled_sub_device_is_reconfigured_and_reaches_op() {
    let mut rig = drives_in_op(6);
    let state = |rig: &Rig, position: usize| rig.segment.sub_devices()[position].al_status();
    for gone in [3, 5, 1] {
        rig.events.clear();
        assert!(rig.segment.power_cycle(gone));
        let took = cycles_until_all_are_back(&mut rig, &[gone], 1);
        assert!(took > 20, "{took} cycles are too few for all of it");
        assert_eq!(recovered(&rig), [(gone as u16, true)]);
        assert_eq!(state(&rig, gone), AlStatus::in_state(AlState::Op));
        // Its start-up SDO, which the drive lost with its power, was written again; and its clock
        // agrees with the others.
        for _ in 0..300 {
            rig.cycle();
        }
        assert_eq!(rig.main_device.inputs(gone).len(), rig.main_device.inputs(0).len());
        let difference = rig.main_device.clock().largest_difference;
        assert!(difference < Duration::from_micros(5), "{difference:?} after {gone}");
    }
}

/// A request in progress when its SubDevice vanishes does not delay the recovery, and a waiting one
/// is carried out afterwards.
#[test]
fn requests_made_around_a_way_back_are_all_answered() {
    let falls: [fn(&mut Rig); 2] = [
        |rig| assert!(rig.segment.power_cycle(1)),
        |rig| rig.segment.sub_device_mut(1).unwrap().expire_watchdog(),
    ];
    for (number, fall) in falls.into_iter().enumerate() {
        let mut carried_out = 0;
        for wait in (0..60).step_by(3) {
            let mut rig = drives_in_op(3);
            fall(&mut rig);
            (0..wait).for_each(|_| _ = rig.cycle());
            let service = MailboxService::Upload { index: 0x1018, sub_index: 1, complete_access: false };
            let request = MailboxRequest { position: 1, service, data: Vec::with_capacity(4) };
            if rig.main_device.submit(request).is_err() {
                continue;
            }
            cycles_until_all_are_back(&mut rig, &[1], 60);
            (0..200).for_each(|_| _ = rig.cycle());
            let mut answers = rig.events.iter().filter_map(|it| match it {
                Event::Mailbox(outcome) => Some(&outcome.result),
                _ => None,
            });
            let (answer, another) = (answers.next(), answers.next());
            assert!(answer.is_some() && another.is_none(), "fall {number}, {wait}: {:?}", rig.events);
            carried_out += usize::from(matches!(answer, Some(Ok(_))));
        }
        assert!(carried_out >= 5, "fall {number}: {carried_out} of 20");
    }
}

// feature(main-device): the reference clock itself may lose its power: another takes its place until it follows that one
#[test]
fn the_reference_clock_comes_back_into_the_time_of_the_others() {
    let mut rig = drives_in_op(4);
    assert_eq!(rig.main_device.clock().reference, Some(0));
    let before = (rig.main_device.clock().reference_time, rig.now);
    assert!(rig.segment.power_cycle(0));
    cycles_until_all_are_back(&mut rig, &[0], 1);
    for _ in 0..300 {
        rig.cycle();
    }
    let clock = rig.main_device.clock();
    assert_eq!(clock.reference, Some(0));
    let passed = i128::from(clock.reference_time) - i128::from(before.0);
    let expected = rig.now.since(before.1).as_nanos() as i128;
    // A crystal that is off by 30 ppm, and frames on their way.
    assert!((passed - expected).abs() < 2_000_000, "{passed} ns, expected {expected}");
    assert!(clock.largest_difference < Duration::from_micros(5), "{:?}", clock.largest_difference);
}

#[test]
fn switched_off_sub_device_returns_with_its_power() {
    let mut rig = drives_in_op(5);
    assert!(rig.segment.power_off(2));
    for cycle in 0..2000 {
        rig.cycle();
        assert!(cycle == 0 || rig.main_device.exchanged(1));
        assert!(
            !rig.main_device.exchanged(2) && !rig.main_device.exchanged(4),
            "behind it nobody is reached"
        );
    }
    let gone = |it: &&Event| matches!(it, Event::Unreachable { .. });
    assert_eq!(rig.events.iter().filter(gone).count(), 3, "{:?}", rig.events);
    assert!(rig.segment.power_on(2));
    cycles_until_all_are_back(&mut rig, &[2, 3, 4], 1);
    // SubDevices behind it have been without the reference clock's time for too long: their clocks
    // are set again, too.
    assert_eq!(recovered(&rig), [(2, true), (3, true), (4, true)]);
    let was_off = |it: &Event| matches!(it, Event::Reconfiguring { position: 2 });
    assert_eq!(rig.events.iter().filter(|it| matches!(it, Event::Reconfiguring { .. })).count(), 1);
    assert!(rig.events.iter().any(was_off), "{:?}", rig.events);
}

// feature(main-device): a loss of all SubDevices is reported while it lasts
#[test]
fn loss_of_the_whole_bus_is_reported_during_the_outage() {
    let unreachable = |rig: &Rig| {
        let all = rig.events.iter();
        all.filter_map(|it| match it {
            Event::Unreachable { position } => Some(*position),
            _ => None,
        })
        .collect::<Vec<_>>()
    };
    for loses_power in [true, false] {
        let mut rig = drives_in_op(3);
        if loses_power {
            (0..3).for_each(|it| assert!(rig.segment.power_off(it)));
        } else {
            assert!(rig.segment.disconnect(0, 0));
        }
        let soon = (Duration::from_millis(900).as_nanos() / PERIOD.as_nanos()) as usize;
        for cycle in 0..soon {
            rig.cycle();
            assert!(cycle > soon / 4 || unreachable(&rig).is_empty(), "a short loss proves nothing");
        }
        assert_eq!(unreachable(&rig), [0], "the first SubDevice, once");
        if loses_power {
            (0..3).for_each(|it| assert!(rig.segment.power_on(it)));
        } else {
            assert!(rig.segment.connect(0, 0));
        }
        cycles_until_all_are_back(&mut rig, &[0, 1, 2], 0);
        let all: &[u16] = if loses_power { &[0, 1, 2] } else { &[0] };
        assert_eq!(unreachable(&rig), all, "no SubDevice twice");
        // A later loss is reported again.
        rig.events.clear();
        assert!(rig.segment.power_off(0));
        for _ in 0..50 {
            rig.cycle();
        }
        assert!(rig.segment.power_on(0));
        cycles_until_all_are_back(&mut rig, &[0], usize::MAX);
        assert_eq!(unreachable(&rig), [0], "{:?}", rig.events);
    }
}

#[test]
fn a_cable_that_is_plugged_again_brings_all_behind_it_back() {
    for cycles in [2, 30, 700] {
        let mut rig = drives_in_op(5);
        assert!(rig.segment.disconnect(1, 1));
        for _ in 0..cycles {
            rig.cycle();
        }
        assert!(rig.segment.connect(1, 1));
        let gone: &[usize] = if cycles > 100 { &[2, 3, 4] } else { &[] };
        for _ in 0..300 {
            rig.cycle();
        }
        assert!((0..5).all(|it| rig.main_device.exchanged(it)), "after {cycles}: {:?}", rig.events);
        assert!(recovered(&rig).iter().all(|(position, anew)| *position > 1 && !anew));
        assert!(gone.iter().all(|&it| recovered(&rig).contains(&(it as u16, false))));
    }
}

#[test]
fn all_that_lost_their_power_at_once_come_back() {
    let mut rig = drives_in_op(12);
    (0..12).for_each(|it| assert!(rig.segment.power_cycle(it)));
    let all: Vec<_> = (0..12).collect();
    cycles_until_all_are_back(&mut rig, &all, 0);
    assert_eq!(recovered(&rig).len(), 12);
}

/// Drives in Op on a segment that leaves the source address unchanged.
fn unmarked_in_op(count: usize) -> Rig {
    let configuration =
        Configuration { replies: Replies::UnchangedSource, ..described(vec![configured(); count]) };
    let mut rig = Rig::new(configuration, drives(count as u32));
    rig.unmark();
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    rig.events.clear();
    rig
}

// feature(main-device): a bus with unchanged source addresses returns after a power loss of all SubDevices
#[test]
fn an_unmarked_bus_returns_after_a_power_loss_of_all() {
    for count in [1, 6, 64] {
        let mut rig = unmarked_in_op(count);
        (0..count).for_each(|it| assert!(rig.segment.power_cycle(it)));
        let all: Vec<_> = (0..count).collect();
        cycles_until_all_are_back(&mut rig, &all, 0);
        assert_eq!(recovered(&rig).len(), count);
    }
}

/// The state of the last SubDevice is read in a frame with no other datagram.
#[test]
fn a_single_unmarked_subdevice_returns_after_a_power_loss() {
    let mut rig = unmarked_in_op(3);
    assert!(rig.segment.power_cycle(2));
    cycles_until_all_are_back(&mut rig, &[2], 1);
    assert_eq!(recovered(&rig), [(2, true)]);
}

// feature(main-device): another device in the place of one that is gone stays out, and is named
#[test]
fn another_identity_in_its_place_stays_out_and_is_named() {
    let mut rig = drives_in_op(4);
    let other = Identity { product_code: 0x777, serial: 9, ..DRIVE };
    rig.segment.power_off(3);
    for _ in 0..200 {
        rig.cycle();
    }
    let image = with_coe(other, "another", default_mapping()).image().emit();
    rig.segment.sub_device_mut(3).expect("it is there").set_sii(image);
    rig.segment.power_on(3);
    rig.events.clear();
    for cycle in 0..3000 {
        rig.cycle();
        assert!(cycle == 0 || (0..3).all(|it| rig.main_device.exchanged(it)));
    }
    let strangers: Vec<_> = rig
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Stranger { place, identity, expected, .. } => Some((*place, *identity, *expected)),
            _ => None,
        })
        .collect();
    assert_eq!(strangers, [(3, other, Some(3))], "told once: {:?}", rig.events);
    assert_eq!(rig.segment.sub_devices()[3].al_status(), AlStatus::in_state(AlState::Init));
    assert_eq!(recovered(&rig), []);
}

#[test]
fn foreign_device_with_a_missing_address_is_excluded() {
    let mut rig = drives_in_op(4);
    let other = Identity { serial: 77, ..DRIVE };
    rig.segment.power_off(3);
    for _ in 0..200 {
        rig.cycle();
    }
    let image = with_coe(other, "of another bus", default_mapping()).image().emit();
    rig.segment.sub_device_mut(3).expect("it is there").set_sii(image);
    rig.segment.power_on(3);
    let mut buffer = [0; 64];
    let mut builder = FrameBuilder::new(&mut buffer, MacAddress::MAIN_DEVICE);
    let address = Address::at_position(3, register::STATION_ADDRESS);
    let header = DatagramHeader::new(Command::Apwr, 0, address, 2);
    builder.push_data(header, &0x1004_u16.to_le_bytes()).expect("room");
    let length = builder.finish();
    rig.segment.process_frame(rig.now, &mut buffer[..length]);
    rig.events.clear();
    for cycle in 0..3000 {
        rig.cycle();
        assert!(cycle == 0 || (0..3).all(|it| rig.main_device.exchanged(it)));
        assert!(!rig.main_device.exchanged(3));
    }
    let strangers = rig.events.iter().filter(
        |it| matches!(it, Event::Stranger { place: 3, identity, expected: Some(3), .. } if *identity == other),
    );
    assert_eq!(strangers.count(), 1, "{:?}", rig.events);
    assert_eq!(recovered(&rig), []);
}

#[test]
fn refusing_sub_device_is_retried_with_backoff_then_abandoned() {
    let mut rig = drives_in_op(3);
    rig.segment.power_off(1);
    for _ in 0..200 {
        rig.cycle();
    }
    let refused = (AlState::SafeOp, AlStatusCode::UNKNOWN_REQUESTED_STATE);
    rig.segment.sub_device_mut(1).expect("it is there").refuse_state(Some(refused));
    rig.segment.power_on(1);
    rig.events.clear();
    let mut tried = Vec::new();
    for cycle in 0..30_000 {
        rig.cycle();
        let failed = |it: &Event| matches!(it, Event::NotRecovered { position: 1, .. });
        let now = rig.events.iter().filter(|it| failed(it)).count();
        if now > tried.len() {
            tried.push(cycle);
        }
        assert!(cycle == 0 || rig.main_device.exchanged(0));
    }
    let pauses: Vec<_> = tried.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.windows(2).all(|pair| pair[1] + 20 >= pair[0]), "{pauses:?}");
    let last = rig.events.iter().rev().find(|it| matches!(it, Event::NotRecovered { .. }));
    assert!(matches!(last, Some(Event::NotRecovered { again_in: None, .. })), "{:?}", rig.events);
    assert_eq!(tried.len(), 8, "{tried:?}");
    // After it disappeared and returned, it is tried again.
    rig.segment.sub_device_mut(1).expect("it is there").refuse_state(None);
    rig.segment.power_cycle(1);
    rig.events.clear();
    cycles_until_all_are_back(&mut rig, &[1], 1);
}

#[test]
fn without_recovery_a_subdevice_stays_out() {
    let configuration = Configuration { recovery: false, ..described(vec![configured(); 3]) };
    let mut rig = in_op(configuration, drives(3));
    rig.segment.power_cycle(1);
    for _ in 0..1000 {
        rig.cycle();
    }
    assert_eq!(recovered(&rig), []);
    assert!(!rig.main_device.exchanged(1));
}

#[derive(Clone, Copy, Debug)]
enum Blow {
    Power(usize),
    Off(usize),
    On(usize),
    Pull(usize),
    Plug(usize),
    Wait(usize),
}

fn blow() -> impl Strategy<Value = Blow> {
    prop_oneof![
        (0_usize..5).prop_map(Blow::Power),
        (0_usize..5).prop_map(Blow::Off),
        (0_usize..5).prop_map(Blow::On),
        (0_usize..4).prop_map(Blow::Pull),
        (0_usize..4).prop_map(Blow::Plug),
        (0_usize..400).prop_map(Blow::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// After any of it: when all have power and cables again, all are in Op again, and only they.
    #[test]
    fn any_series_of_faults_ends_in_op(blows in proptest::collection::vec(blow(), 1..12)) {
        let mut rig = in_op(to_op(), (0..5).map(|number| numbered(number, 1)).collect());
        for blow in blows {
            match blow {
                Blow::Power(it) => drop(rig.segment.power_cycle(it)),
                Blow::Off(it) => drop(rig.segment.power_off(it)),
                Blow::On(it) => drop(rig.segment.power_on(it)),
                Blow::Pull(it) => drop(rig.segment.disconnect(it, 1)),
                Blow::Plug(it) => drop(rig.segment.connect(it, 1)),
                Blow::Wait(cycles) => (0..cycles).for_each(|_| _ = rig.cycle()),
            }
        }
        for it in 0..5 {
            rig.segment.power_on(it);
            rig.segment.connect(it, 1);
        }
        let mut whole = 0;
        for _ in 0..8000 {
            whole = if rig.cycle().all_fresh { whole + 1 } else { 0 };
            if whole > 50 {
                break;
            }
        }
        prop_assert!(whole > 50, "{:?}", rig.events);
        let states: Vec<_> = rig.segment.sub_devices().iter().map(|it| it.al_status()).collect();
        prop_assert_eq!(states, vec![AlStatus::in_state(AlState::Op); 5]);
        prop_assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    }
}

/// The clock of a SubDevice in SafeOp that waits for its next attempt keeps running. If another
/// became the reference clock meanwhile, frames would distribute zero as the time.
// feature(main-device): the reference clock stays one while its SubDevice is on its way back from SafeOp
#[test]
fn a_reference_clock_stays_one_while_it_waits_in_safe_op() {
    for wait in (0..100).step_by(10) {
        let mut rig = in_op(to_op(), drives(3));
        let fall = |rig: &mut Rig| rig.segment.sub_device_mut(0).unwrap().expire_watchdog();
        fall(&mut rig);
        (0..300).for_each(|_| _ = rig.cycle());
        rig.segment.power_off(2);
        (0..100).for_each(|_| _ = rig.cycle());
        rig.segment.power_on(2);
        (0..wait).for_each(|_| _ = rig.cycle());
        fall(&mut rig);
        for _ in 0..SOON {
            rig.cycle();
            assert_eq!(rig.main_device.clock().reference, Some(0), "after {wait} cycles: {:?}", rig.events);
        }
        assert!((0..3).all(|it| rig.main_device.exchanged(it)), "after {wait} cycles: {:?}", rig.events);
        let difference = rig.main_device.clock().largest_difference;
        assert!(difference < Duration::from_micros(5), "after {wait} cycles: {difference:?}");
    }
}
