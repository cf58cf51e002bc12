//! Cables in the wrong ports: IN and OUT swapped at one SubDevice. The bus comes up in the order of
//! the cable, reports the place, and its clocks are right.
//!
//! Two required SubDevices that changed places while they had no power: both stay out, and are
//! named.

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::main_device::{BringUpPhase, Configuration, Event, ExpectedIdentity, SubDeviceConfiguration};
use ethercat::register::{EscFeatures, dc};
use ethercat::sii::Identity;
use onbeat_simulator::application::digital::{DigitalInputs, Wires};
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{digital_inputs, with_coe};
use onbeat_simulator::application::{GenericDevice, NoApplication};
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Oscillator, Segment, SubDevice};
use proptest::prelude::*;
use rig::devices::stamped_mapping;
use rig::{DRIVE, Rig, described, drive, to_op};

use crate::rig;

/// From port to port of one ESC.
const FORWARDING: u32 = 300;

/// SubDevices of one kind that differ by their serial number.
fn numbered(number: u32, has_clock: bool) -> SubDevice {
    let identity = Identity { vendor_id: 1, product_code: 2, revision: 3, serial: number };
    let image = with_coe(identity, "one of many", default_mapping()).image();
    let application = GenericDevice::from_sii(&image).expect("a mapping that fits");
    let features = if has_clock { EscDescription::FEATURES } else { EscFeatures { bits: 0 } };
    let oscillator = Oscillator {
        initial_time: (1 << 32) * (u64::from(number) + 1) - 77_000_000 * u64::from(number),
        // Little: a control loop learns the rate of its crystal over more writes than these tests
        // take.
        drift_ppm: f64::from(number % 5) * 0.6 - 1.2,
        ..Oscillator::default()
    };
    let esc =
        EscDescription { features, oscillator, forwarding_delay: FORWARDING, ..EscDescription::default() };
    SubDevice::new(esc, image.emit(), Box::new(application))
}

fn all(count: u32) -> Vec<SubDevice> {
    (0..count).map(|number| numbered(number, true)).collect()
}

/// A line of SubDevices; the ones in `swapped` are entered at port 1 and left at port 0.
fn line(devices: Vec<SubDevice>, swapped: &[usize]) -> Segment {
    let way_in = |place: usize| usize::from(swapped.contains(&place));
    let attachments: Vec<_> = (1..devices.len())
        .map(|child| {
            let delay = Duration::from_nanos(100 + 10 * child as u64);
            Attachment::new(child - 1, 1 - way_in(child - 1)).entered_at(way_in(child)).with_delay(delay)
        })
        .collect();
    Segment::entered_at(way_in(0), devices, &attachments).expect("a line")
}

fn delay_written(rig: &Rig, device: usize) -> u32 {
    let mut bytes = [0; 4];
    rig.segment.sub_devices()[device].peek(dc::SYSTEM_TIME_DELAY, &mut bytes);
    u32::from_le_bytes(bytes)
}

/// Brings it up to Op. The order follows the cable, and the positions in `swapped` are named.
fn run_up(segment: Segment, swapped: &[usize]) -> Rig {
    let count = segment.sub_devices().len();
    let mut rig = Rig::on(to_op(), segment);
    rig.run_up();
    let found = rig.main_device.sub_devices();
    let serials: Vec<_> = found.iter().map(|it| it.identity.serial).collect();
    assert_eq!(serials, (0..count as u32).collect::<Vec<_>>(), "the order of the cable");
    let entered: Vec<_> = (0..count).filter(|&place| found[place].entry_port != 0).collect();
    assert_eq!(entered, swapped);
    for (place, it) in found.iter().enumerate() {
        let remarks = it.remarks();
        assert_eq!(remarks.len(), usize::from(swapped.contains(&place)), "{remarks:?}");
        if let Some(remark) = remarks.first() {
            let beginning = format!("SubDevice {place} \"one of many\": frames enter at port ");
            assert!(
                remark.starts_with(&beginning) && remark.ends_with("IN and OUT are swapped"),
                "{remark}"
            );
        }
        assert_eq!(usize::from(it.position), place);
    }
    rig
}

/// All clocks within 100 ns after two seconds.
fn assert_one_time(rig: &mut Rig) {
    for _ in 0..2_000 {
        rig.cycle();
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op, "{:?}", rig.events);
    let times: Vec<_> =
        rig.segment.sub_devices().iter().map(|device| device.system_time(rig.now)).collect();
    let spread = times.iter().max().unwrap_or(&0) - times.iter().min().unwrap_or(&0);
    assert!(spread < 100, "{times:?}");
}

#[test]
fn at_each_place_of_a_line() {
    for place in 0..5 {
        let mut rig = run_up(line(all(5), &[place]), &[place]);
        assert_one_time(&mut rig);
    }
}

#[test]
fn power_cycled_sub_devices_return_to_their_positions() {
    for gone in 0..5 {
        let mut rig = run_up(line(all(5), &[1, 3]), &[1, 3]);
        let stations: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.station_address).collect();
        assert_eq!(stations, [0x1001, 0x1002, 0x1003, 0x1004, 0x1005]);
        assert!(rig.segment.power_cycle(gone));
        assert!((0..2_000).any(|cycle| rig.cycle().all_fresh && cycle > 100), "{gone}: {:?}", rig.events);
        let is_back =
            |it: &Event| matches!(it, Event::Recovered { position, .. } if usize::from(*position) == gone);
        assert!(rig.events.iter().any(is_back), "{gone}: {:?}", rig.events);
    }
}

#[test]
fn alone() {
    run_up(line(all(1), &[0]), &[0]);
}

// feature(main-device): IN and OUT swapped anywhere: reported with the place, brought up, in the order of the cable, with correct delays
#[test]
fn delays_match_cable_to_the_processing_port() {
    // Cables of 110, 120, 130 ns; the second is swapped, and processed when the frame has come back
    // from the last.
    let rig = run_up(line(all(4), &[1]), &[1]);
    let (second, third, fourth) = (110 + FORWARDING, 120 + FORWARDING, 130 + FORWARDING);
    let there = second + third + fourth;
    let expected = [0, there + fourth + third, second + third, there];
    for (device, expected) in expected.into_iter().enumerate() {
        let found = delay_written(&rig, device);
        assert!(found.abs_diff(expected) <= 2, "SubDevice {device}: {found} ns, expected {expected} ns");
    }
}

/// A description in the order of the cable means the same SubDevices.
// feature(main-device): IN and OUT swapped anywhere: reported with the place, brought up, in the order of the cable, with correct delays
#[test]
fn names_follow_the_cable() {
    let names = ["base", "shoulder", "elbow", "wrist"];
    let configuration =
        names.map(|name| SubDeviceConfiguration { name: name.into(), ..Default::default() });
    let mut rig = Rig::on(described(configuration.to_vec()), line(all(4), &[1]));
    rig.run_up();
    for (place, name) in names.into_iter().enumerate() {
        let found = &rig.main_device.sub_devices()[place];
        assert_eq!((found.name.as_str(), found.identity.serial as usize), (name, place));
    }
    // Data written to a place arrives there: 0x6040, the first object mapped.
    for place in 0..4 {
        rig.main_device.outputs_mut(place)[0] = 0x10 + place as u8;
    }
    for _ in 0..5 {
        rig.cycle();
    }
    for (place, device) in rig.segment.sub_devices().iter().enumerate() {
        let sync_manager =
            &rig.main_device.sub_devices()[place].sii.as_ref().expect("an SII").sync_managers()[2];
        let mut first = [0];
        device.peek(sync_manager.physical_address, &mut first);
        assert_eq!(first[0], 0x10 + place as u8, "SubDevice {place}");
    }
}

#[test]
fn without_any_clock_the_last_and_the_first() {
    for place in [0, 2] {
        let devices = (0..3).map(|number| numbered(number, false)).collect();
        run_up(line(devices, &[place]), &[place]);
    }
}

/// An ESC without a link at port 0 destroys frames that another such ESC has marked.
#[test]
fn branches_of_a_junction() {
    // 0 -3- 1, -1- 2 -1- 3, -2- 4, with 2 swapped and entered at its port 2, 0 entered at port 0.
    let attachments = [
        Attachment::new(0, 3),
        Attachment::new(0, 1).entered_at(2),
        Attachment::new(2, 0),
        Attachment::new(0, 2).entered_at(1),
    ];
    let segment = Segment::with_topology(all(5), &attachments).expect("a tree");
    let mut rig = run_up(segment, &[2, 4]);
    assert_one_time(&mut rig);
}

#[test]
fn a_branch_at_each_port_of_a_swapped_subdevice() {
    // Frames enter at port 2, reach 1 by port 0, are processed, and reach 2 and 3 by ports 3 and 1.
    let attachments = [Attachment::new(0, 0), Attachment::new(0, 3), Attachment::new(0, 1)];
    let segment = Segment::entered_at(2, all(4), &attachments).expect("a tree");
    let mut rig = run_up(segment, &[0]);
    assert_one_time(&mut rig);
}

/// Times give the tree with the swapped ones at any place.
// feature(main-device): IN and OUT swapped anywhere: reported with the place, brought up, in the order of the cable, with correct delays
#[test]
fn any_line_with_any_swapped_ones() {
    let line_of = (2_u32..9).prop_flat_map(|count| {
        let swapped = proptest::collection::vec(any::<bool>(), count as usize - 1);
        (Just(count), swapped)
    });
    let configuration =
        ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        configuration,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    runner
        .run(&line_of, |(count, swapped)| {
            let swapped: Vec<_> = (0..swapped.len()).filter(|&place| swapped[place]).collect();
            run_up(line(all(count), &swapped), &swapped);
            Ok(())
        })
        .expect("every line comes up");
}

/// `scan` of a bus of SubDevices without an application: no panic at any of their answers.
#[test]
fn a_scan_says_where() {
    let image = with_coe(Identity::default(), "bare", stamped_mapping(0, 0)).image().emit();
    let devices = (0..3).map(|_| SubDevice::from_sii(&image, Box::new(NoApplication))).collect();
    let mut rig = Rig::on(Configuration::default(), line(devices, &[1]));
    rig.pump_to(BringUpPhase::PreOp);
    assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.events);
    let remarks: Vec<_> = rig.main_device.sub_devices().iter().flat_map(|it| it.remarks()).collect();
    assert_eq!(
        remarks,
        ["SubDevice 1 \"bare\": frames enter at port 1, not at port 0: its IN and OUT are swapped"]
    );
}

const INPUTS: Identity = Identity { product_code: 0x0404, ..DRIVE };

fn inputs() -> SubDevice {
    let image = digital_inputs(INPUTS, "inputs", 8).image();
    let inputs = DigitalInputs::new(8, Wires::new()).unwrap();
    SubDevice::new(EscDescription::default(), image.emit(), Box::new(inputs))
}

/// The SubDevices at these two places of the cable change them.
fn change_places(rig: &mut Rig, [one, other]: [usize; 2]) {
    let mut put = |place: usize, device: SubDevice| {
        std::mem::replace(rig.segment.sub_device_mut(place).unwrap(), device)
    };
    let first = put(one, drive(99));
    let second = put(other, first);
    put(one, second);
}

/// In Op; then the two lose their power, change places, and have it again.
fn changed(devices: Vec<SubDevice>, places: [usize; 2]) -> Rig {
    let mut rig = Rig::new(to_op(), devices);
    rig.run_up();
    rig.events.clear();
    places.into_iter().for_each(|place| assert!(rig.segment.power_off(place)));
    (0..300).for_each(|_| _ = rig.cycle());
    change_places(&mut rig, places);
    places.into_iter().for_each(|place| assert!(rig.segment.power_on(place)));
    (0..3000).for_each(|_| _ = rig.cycle());
    rig
}

/// Reported unexpected SubDevices: the position of each, and its configured position. At each
/// position a SubDevice is expected.
fn named(rig: &Rig) -> Vec<(u16, Option<u16>)> {
    let stranger = |event: &Event| match event {
        Event::Stranger { place, known, expected, .. } => {
            assert_eq!(*expected, Some(*place));
            Some((*place, *known))
        }
        _ => None,
    };
    rig.events.iter().filter_map(stranger).collect()
}

fn stay_out(rig: &Rig, places: [usize; 2]) {
    let brought_back = |event: &Event| match event {
        Event::Recovered { position, .. } | Event::Reconfiguring { position } => {
            places.contains(&usize::from(*position))
        }
        _ => false,
    };
    assert!(!rig.events.iter().any(brought_back), "{:?}", rig.events);
    for place in places {
        assert_eq!(rig.segment.sub_devices()[place].al_status(), AlStatus::in_state(AlState::Init));
        assert!(!rig.main_device.exchanged(place));
    }
    assert!(rig.main_device.exchanged(0), "the others go on");
}

// feature(main-device): two required SubDevices that changed places while they had no power stay in Init, each named with its place
/// Drives of one kind that differ by their serial numbers: each is the other's axis, and neither
/// moves.
#[test]
fn two_of_one_kind_stay_out_and_are_named() {
    for places in [[1, 2], [1, 3], [2, 3]] {
        let rig = changed((0..4).map(drive).collect(), places);
        let [one, other] = places.map(|place| place as u16);
        assert_eq!(named(&rig), [(one, Some(other)), (other, Some(one))]);
        stay_out(&rig, places);
    }
}

/// A drive and a terminal.
#[test]
fn two_of_different_kinds_stay_out_and_are_named() {
    let rig = changed(vec![drive(0), drive(1), inputs(), drive(3)], [1, 2]);
    assert_eq!(named(&rig), [(1, Some(2)), (2, Some(1))]);
    stay_out(&rig, [1, 2]);
}

/// Back in their own places they are in Op again.
#[test]
fn back_in_their_places_they_are_in_op_again() {
    let places = [1, 2];
    let mut rig = changed((0..4).map(drive).collect(), places);
    rig.events.clear();
    places.into_iter().for_each(|place| assert!(rig.segment.power_off(place)));
    (0..300).for_each(|_| _ = rig.cycle());
    change_places(&mut rig, places);
    places.into_iter().for_each(|place| assert!(rig.segment.power_on(place)));
    (0..3000).for_each(|_| _ = rig.cycle());
    assert!((0..4).all(|place| rig.main_device.exchanged(place)), "{:?}", rig.events);
    assert_eq!(named(&rig), []);
}

/// At the start kinds, and where they are described aliases, are compared place by place: the first
/// of the two is named with what was expected.
#[test]
fn at_the_start_the_first_in_another_place_is_named() {
    let of = |identity: Identity, name: &str| SubDeviceConfiguration {
        name: name.to_owned(),
        identity: Some(ExpectedIdentity {
            vendor_id: identity.vendor_id,
            product_code: identity.product_code,
            revision: None,
        }),
        ..SubDeviceConfiguration::default()
    };
    let configuration = described(vec![of(DRIVE, "left"), of(DRIVE, "right"), of(INPUTS, "switches")]);
    let mut rig = Rig::new(configuration, vec![drive(0), inputs(), drive(1)]);
    rig.pump_to(BringUpPhase::PreOp);
    let failure = rig.failure().unwrap().to_string();
    assert!(failure.starts_with("SubDevice 1 \"right\": "), "{failure}");
    let (found, expected) = (failure.find("0x00000404"), failure.find("0x00000402"));
    assert!(found.is_some() && expected.is_some(), "{failure}");
}
