//! Descriptions and buses that are ambiguous or contradict themselves.
//!
//! Clocks of SubDevices that join late: on a bus without any, and with latch inputs that are read.

use ethercat::main_device::{LatchMode, Latches};

use super::unlike::plain;
use super::*;

/// Reason that the bus does not come up.
pub(super) fn refused(described_as: Vec<SubDeviceConfiguration>, devices: Vec<SubDevice>) -> BusError {
    let mut rig = Rig::new(described(described_as), devices);
    rig.pump_to(BringUpPhase::PreOp);
    rig.failure().cloned().unwrap_or_else(|| panic!("it came up: {:?}", rig.main_device.sub_devices()))
}

#[test]
fn indistinguishable_sub_devices_are_one_sentence() {
    let sentence = |described_as, devices| refused(described_as, devices).to_string();
    assert_eq!(
        sentence(
            vec![required("hub", 1), optional("left", 2), optional("right", 2)],
            vec![device(1, 0), device(2, 0)]
        ),
        "the SubDevice at place 1 of the bus (vendor 0xffff0b01 product 0x00000502 revision 0x00000001) can be SubDevice 1 \
         \"left\" or SubDevice 2 \"right\", expected one only: give them an alias each"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), hot("tool", 2, Some(5), None)],
            vec![device(1, 0), device(2, 5), device(2, 5)]
        ),
        "the SubDevices at positions 1 and 2 of the bus both match SubDevice 1 \"tool\", expected \
         one: give each a different alias, or unplug one"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), optional("left", 2), required("right", 3)],
            vec![device(1, 0), device(2, 0)]
        ),
        "SubDevice 2 \"right\" is required, and none of the 2 that answer matches it, in the order \
         described; check its power, the cable to it and the order"
    );
    assert_eq!(
        sentence(vec![optional("left", 2)], vec![device(7, 0)]),
        "1 SubDevice answers, expected one or more SubDevices of the robot file: the first that \
         answers is vendor 0xffff0b01 product 0x00000507 revision 0x00000001; correct the robot \
         file or the cable"
    );
    assert_eq!(
        sentence(
            vec![required("hub", 1), hot("tool", 2, Some(5), None), required("last", 3)],
            vec![device(1, 0), device(2, 5), device(3, 0)]
        ),
        "SubDevice 2 \"last\" is required and is connected behind SubDevice 1 \"tool\", which is \
         hot_connect, expected nothing required behind what may be unplugged: connect it \
         elsewhere, or make it part of that group"
    );
    let unknown = SubDeviceConfiguration { process_data: ProcessDataSource::Sii, ..optional("left", 2) };
    let unknown = SubDeviceConfiguration { startup: Vec::new(), ..unknown };
    assert_eq!(
        sentence(vec![required("hub", 1), unknown], vec![device(1, 0)]),
        "SubDevice 1 \"left\": it is absent, its process data is not in the robot file, and no \
         SubDevice of the same type is present; give its pdos, or plug it in for the first start"
    );
}

#[test]
fn contradictory_descriptions_are_one_sentence_each() {
    let sentence = |sub_devices: Vec<SubDeviceConfiguration>| {
        MainDevice::new(described(sub_devices)).expect_err("a contradiction").to_string()
    };
    let in_group = |it: SubDeviceConfiguration, group: &str| SubDeviceConfiguration {
        group: Some(group.to_owned()),
        ..it
    };
    assert_eq!(
        sentence(vec![hot("a", 1, Some(1), Some("tool")), in_group(required("b", 2), "tool")]),
        "SubDevice 1 \"b\" is required in the group \"tool\", expected hot_connect, as the first \
         of that group: SubDevices that are plugged together have the same presence"
    );
    assert_eq!(
        sentence(vec![
            hot("a", 1, Some(1), Some("tool")),
            required("b", 2),
            hot("c", 3, None, Some("tool"))
        ]),
        "SubDevice 2 \"c\" is of the hot-connect group \"tool\" behind a SubDevice that is not, expected all of a group in a row, \
         as they are plugged"
    );
    assert_eq!(
        sentence(vec![hot("a", 1, Some(7), None), hot("b", 2, Some(7), None)]),
        "SubDevice 1 \"b\" has alias 7, expected every alias once: SubDevice 0 has it"
    );
    let nothing = SubDeviceConfiguration { identity: None, ..optional("a", 1) };
    assert_eq!(
        sentence(vec![nothing]),
        "SubDevice 0 \"a\" is optional and has neither an alias nor an identity, expected an alias \
         or an identity, which identifies it among the others"
    );
    assert_eq!(
        sentence(vec![hot("a", 1, None, None), required("b", 1)]),
        "SubDevice 0 \"a\" is hot_connect with the identity of SubDevice 1 and no alias, expected \
         an alias that distinguishes two alike"
    );
    let fine = vec![required("a", 1), hot("b", 2, Some(1), Some("tool")), hot("c", 1, None, Some("tool"))];
    assert!(MainDevice::new(described(fine)).is_ok());
}

/// A coupler without a clock, and two drives that need one for SYNC0; the drives are off.
fn without_clocks() -> Rig {
    let hub = SubDeviceConfiguration { name: "hub".to_owned(), ..SubDeviceConfiguration::default() };
    let described_as = vec![hub, optional("first", 1), optional("second", 2)];
    let attachments = [(0, 3), (0, 1)].map(|(at, port)| Attachment::new(at, port));
    let devices = vec![plain(coupler(identity(9), "hub"), false), device(1, 0), device(2, 0)];
    let segment = Segment::with_topology(devices, &attachments).expect("a star");
    let rig = in_op(described(described_as), segment, &[1, 2]);
    assert_eq!(rig.main_device.clock().reference, None);
    rig
}

// feature(main-device): on a bus that came up without a clock the first one to join becomes the reference clock
#[test]
fn the_first_clock_to_join_becomes_the_reference() {
    for order in [&[1, 2][..], &[2, 1], &[2]] {
        for at_once in [true, false] {
            let mut rig = without_clocks();
            for &position in order {
                assert!(rig.segment.power_on(position));
                for _ in 0..if at_once { 0 } else { SOON } {
                    rig.cycle();
                }
            }
            for _ in 0..SOON {
                rig.cycle();
            }
            assert!(order.iter().all(|&it| rig.main_device.exchanged(it)), "{order:?}: {:?}", rig.events);
            assert_eq!(count(&rig, |it| matches!(it, Event::NotRecovered { .. })), 0, "{:?}", rig.events);
            assert_eq!(rig.main_device.clock().reference, order.iter().min().map(|&it| it as u16));
            let times: Vec<_> =
                order.iter().map(|&it| rig.segment.sub_devices()[it].system_time(rig.now)).collect();
            let apart = times.iter().max().unwrap() - times.iter().min().unwrap();
            assert!(apart < 5_000, "{apart} ns between the clocks, {order:?} at once: {at_once}");
        }
    }
}

#[test]
fn the_clock_of_one_that_is_gone_does_not_count() {
    let configuration = described(vec![required("first", 1), optional("last", 2)]);
    let mut rig = in_op(configuration, Segment::new(vec![device(1, 0), device(2, 0)]), &[]);
    assert!(rig.segment.jump_clock(1, 1_000_000));
    for _ in 0..4 {
        rig.cycle();
    }
    let far = rig.main_device.clock().largest_difference;
    assert!(far > Duration::from_micros(100), "{far:?}");
    assert!(rig.segment.power_off(1));
    for _ in 0..200 {
        rig.cycle();
    }
    let left = rig.main_device.clock().largest_difference;
    assert!(left < Duration::from_micros(5), "{left:?}");
}

/// Edges reported as new, of all that is read while the second of two is brought back to Op.
fn told(bring_down: impl Fn(&mut Rig)) -> usize {
    let latches = Some([LatchMode::SINGLE, LatchMode::default()]);
    let first = required("first", 1);
    let second = SubDeviceConfiguration { latches, ..required("second", 2) };
    let segment = Segment::new(vec![device(1, 0), device(2, 0)]);
    let mut rig = in_op(described(vec![first, second]), segment, &[]);
    assert!(rig.segment.set_latch(1, 0, true));
    rig.cycle();
    let new = |it: Latches| {
        it.inputs.iter().flat_map(|it| [it.rising, it.falling]).filter(|it| it.is_new).count()
    };
    let mut told = 0;
    for cycle in 0..300 {
        if cycle == 20 {
            bring_down(&mut rig);
        }
        if !rig.main_device.reads_latches(1) {
            told += rig.main_device.sub_devices()[1].latches.map_or(0, new);
            rig.main_device.read_latches(1);
        }
        rig.cycle();
    }
    told
}

#[test]
fn edge_is_reported_once_across_a_recovery() {
    assert_eq!(told(|_| ()), 1);
    assert_eq!(told(|rig| rig.segment.sub_device_mut(1).expect("it is there").expire_watchdog()), 1);
    assert_eq!(told(|rig| assert!(rig.segment.power_cycle(1))), 1, "a clock that starts anew has no edge");
}
