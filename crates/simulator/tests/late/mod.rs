//! SubDevices that the bus may lack: absent at the start, late, plugged elsewhere, in groups.

mod refusals;
use crate::rig;
mod unlike;

use std::time::Duration;

use ethercat::al::{AlState, AlStatus};
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, Event, ExpectedIdentity, MailboxError, MailboxRequest,
    MailboxService, MainDevice, Presence, ProcessDataSource, StartupSdo, SubDeviceConfiguration, Sync0,
};
use ethercat::register;
use ethercat::sii::Identity;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::{SiiDescription, coupler, with_coe};
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Segment, SubDevice};
use proptest::prelude::*;

use rig::{DRIVE, PERIOD, Rig, described};

/// Cycles in which any of them is there, on either way.
const SOON: usize = 2000;

/// A kind of drive, identified by its product code.
fn identity(kind: u32) -> Identity {
    Identity { product_code: 0x0500 + kind, serial: 0, ..DRIVE }
}

/// A drive of this kind with an alias, or 0.
fn device(kind: u32, alias: u16) -> SubDevice {
    let description = SiiDescription { alias, ..with_coe(identity(kind), "a drive", default_mapping()) };
    let image = description.image();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::from_sii(&image)));
    SubDevice::new(
        EscDescription::default(),
        image.emit(),
        Box::new(drive.expect("the default mapping fits")),
    )
}

/// The same, described with all that is configured.
fn expected(name: &str, kind: u32, presence: Presence) -> SubDeviceConfiguration {
    let Identity { vendor_id, product_code, .. } = identity(kind);
    SubDeviceConfiguration {
        name: name.to_owned(),
        identity: Some(ExpectedIdentity { vendor_id, product_code, revision: None }),
        process_data: ProcessDataSource::Explicit(default_mapping()),
        startup: vec![StartupSdo { index: 0x6060, sub_index: 0, complete_access: false, data: vec![8] }],
        sync0: Some(Sync0 { cycle: PERIOD, shift: Duration::ZERO }),
        presence,
        ..SubDeviceConfiguration::default()
    }
}

fn required(name: &str, kind: u32) -> SubDeviceConfiguration {
    expected(name, kind, Presence::Required)
}

fn optional(name: &str, kind: u32) -> SubDeviceConfiguration {
    expected(name, kind, Presence::Optional)
}

fn hot(name: &str, kind: u32, alias: Option<u16>, group: Option<&str>) -> SubDeviceConfiguration {
    let group = group.map(str::to_owned);
    SubDeviceConfiguration { alias, group, ..expected(name, kind, Presence::HotConnect) }
}

/// In Op without the positions in `off`, which have no power yet.
fn in_op(configuration: Configuration, segment: Segment, off: &[usize]) -> Rig {
    let mut rig = Rig::on(configuration, segment);
    off.iter().for_each(|&it| assert!(rig.segment.power_off(it)));
    rig.run_up();
    for _ in 0..200 {
        rig.cycle();
    }
    rig
}

fn count(rig: &Rig, wanted: impl Fn(&Event) -> bool) -> usize {
    rig.events.iter().filter(|&it| wanted(it)).count()
}

fn joined(rig: &Rig) -> Vec<u16> {
    let mut joined: Vec<_> = rig
        .events
        .iter()
        .filter_map(|it| match *it {
            Event::Joined { position } => Some(position),
            _ => None,
        })
        .collect();
    joined.sort_unstable();
    joined
}

/// Both ends of the cable by which frames reach a SubDevice: position and port.
fn cable(rig: &Rig, position: usize) -> [(u16, u8); 2] {
    let cable = rig.main_device.sub_devices()[position].cable().expect("its place is known");
    cable.map(|end| (end.position.expect("a SubDevice"), end.port.expect("a port")))
}

/// Station address of the simulated one at this place.
fn station(rig: &Rig, place: usize) -> u16 {
    let mut bytes = [0; 2];
    rig.segment.sub_devices()[place].peek(register::STATION_ADDRESS, &mut bytes);
    u16::from_le_bytes(bytes)
}

/// Cycles until all exchange data. The positions in `others` do so in each cycle, and no cycle is
/// short.
fn cycles_until_all_exchange(rig: &mut Rig, others: &[usize]) -> usize {
    let all = rig.main_device.sub_devices().len();
    for cycle in 0..SOON {
        let report = rig.cycle();
        assert!(others.iter().all(|&it| rig.main_device.exchanged(it)), "in cycle {cycle}: {report:?}");
        if (0..all).all(|it| rig.main_device.exchanged(it)) {
            return cycle;
        }
    }
    let states: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.al_status).collect();
    panic!("not there after {SOON} cycles: {states:?}, {:?}", rig.events);
}

// feature(main-device): of one that joins or is plugged elsewhere the cable to it is learnt: which port of which SubDevice it hangs on
// feature(main-device): a bus comes up without an optional SubDevice, which joins in operation while the others exchange data in every cycle
#[test]
fn an_optional_one_is_absent_at_the_start_and_joins_in_op() {
    for (kinds, late) in [([1, 2, 3], 2), ([1, 2, 3], 1), ([1, 1, 2], 2), ([1, 2, 1], 1)] {
        let described_as = (0..3).map(|it| match it == late {
            true => optional("late", kinds[it]),
            false => required("first", kinds[it]),
        });
        // A star, so that a SubDevice without power does not cut off the others.
        let devices: Vec<_> =
            [9, kinds[0], kinds[1], kinds[2]].into_iter().map(|it| device(it, 0)).collect();
        let hub = required("hub", 9);
        let attachments = [(0, 3), (0, 1), (0, 2)].map(|(at, port)| Attachment::new(at, port));
        let segment = Segment::with_topology(devices, &attachments).expect("a star");
        let configuration = described(std::iter::once(hub).chain(described_as).collect());
        let late = late + 1;
        let mut rig = in_op(configuration, segment, &[late]);
        let others: Vec<_> = (0..4).filter(|&it| it != late).collect();
        assert_eq!(
            count(&rig, |it| matches!(it, Event::Absent { position } if usize::from(*position) == late)),
            1
        );
        assert!(rig.main_device.sub_devices()[late].is_absent());
        assert_eq!(rig.main_device.sub_devices()[late].cable(), None, "nobody has seen it");
        assert!(others.iter().all(|&it| rig.main_device.exchanged(it)) && !rig.main_device.exchanged(late));
        let report = rig.cycle();
        assert!(report.all_fresh && !report.spread, "nobody is missed: {report:?}");
        rig.events.clear();

        assert!(rig.segment.power_on(late));
        let took = cycles_until_all_exchange(&mut rig, &others);
        assert!(took > 20, "{took} cycles are too few for all of it");
        assert_eq!(joined(&rig), [late as u16]);
        assert_eq!(cable(&rig, late), [(0, [0, 3, 1, 2][late]), (late as u16, 0)]);
        assert!(!rig.main_device.sub_devices()[late].is_absent());
        assert_eq!(rig.segment.sub_devices()[late].al_status(), AlStatus::in_state(AlState::Op));
        let spread = (0..300).filter(|_| rig.cycle().spread).count();
        assert!(spread < 20, "{spread} cycles spread");
        let difference = rig.main_device.clock().largest_difference;
        assert!(difference < Duration::from_micros(5), "{difference:?}");
    }
}

/// A star of four, in Op without the third, which is exchanged every `every` cycles.
fn star_without_the_third(every: u16) -> Rig {
    let late = SubDeviceConfiguration { every, ..optional("late", 2) };
    let described_as = vec![required("hub", 9), required("first", 1), late, required("last", 3)];
    let attachments = [(0, 3), (0, 1), (0, 2)].map(|(at, port)| Attachment::new(at, port));
    let devices = [9, 1, 2, 3].map(|it| device(it, 0)).into();
    let segment = Segment::with_topology(devices, &attachments).expect("a star");
    in_op(described(described_as), segment, &[2])
}

#[test]
fn late_member_of_a_slow_group_joins_without_disturbance() {
    let mut rig = star_without_the_third(4);
    let whole = (0..100).filter(|_| rig.cycle().all_fresh).count();
    assert_eq!(whole, 100, "{:?}", rig.main_device.working_counters().collect::<Vec<_>>());
    assert!(rig.segment.power_on(2));
    cycles_until_all_exchange(&mut rig, &[0, 1, 3]);
    assert!(rig.segment.power_off(2));
    for _ in 0..200 {
        rig.cycle();
    }
    let spread = (0..300).filter(|_| rig.cycle().spread).count();
    assert_eq!(spread, 0, "the others are by themselves again");
}

#[test]
fn the_first_inputs_that_are_fresh_are_of_that_cycle() {
    for every in [1, 4] {
        let mut rig = star_without_the_third(every);
        assert!(rig.segment.power_on(2));
        let fresh = (0..SOON).any(|_| {
            rig.cycle();
            rig.main_device.inputs_fresh(2)
        });
        // A drive in Op has a statusword other than zero.
        assert!(fresh && rig.main_device.inputs(2)[..2] != [0; 2], "{:?}", rig.main_device.inputs(2));
    }
}

/// Positions count from the front. A SubDevice that joins shifts all behind it by one, also between
/// the reading of an identity and the writing of an address.
// feature(main-device): one that comes while another is given its address is not taken for it, and both join
#[test]
fn arrival_during_addressing_is_not_confused() {
    for wait in 0..40 {
        let described_as = vec![required("hub", 9), optional("first", 1), optional("second", 2)];
        let devices = [9, 1, 2].map(|it| device(it, 0)).into();
        let attachments = [(0, 3), (0, 1)].map(|(at, port)| Attachment::new(at, port));
        let segment = Segment::with_topology(devices, &attachments).expect("a star");
        let mut rig = in_op(described(described_as), segment, &[1, 2]);
        assert!(rig.segment.power_on(2));
        (0..wait).for_each(|_| _ = rig.cycle());
        assert!(rig.segment.power_on(1));
        let all_exchange = (0..SOON).any(|cycle| {
            rig.cycle();
            for (place, it) in rig.segment.sub_devices().iter().enumerate() {
                let own = 0x1001 + place as u16;
                let is_another =
                    it.al_status().al_state() == Some(AlState::Op) && station(&rig, place) != own;
                assert!(!is_another, "on after {wait} cycles, in cycle {cycle}: {place}, {:?}", rig.events);
            }
            (0..3).all(|it| rig.main_device.exchanged(it))
        });
        assert!(all_exchange, "on after {wait} cycles: {:?}", rig.events);
        assert_eq!(joined(&rig), [1, 2], "on after {wait} cycles");
    }
}

/// A frame is never shorter than 60 bytes, even if a cycle leaves less.
#[test]
fn one_joins_where_process_data_leaves_no_room_in_a_cycle() {
    let mut described_as: Vec<_> = (0..24).map(|it| required(&format!("drive {it}"), 1)).collect();
    described_as.push(optional("late", 2));
    let configuration =
        Configuration { period: *Configuration::PERIODS.start(), ..described(described_as) };
    let devices = (0..25).map(|it| device(1 + it / 24, 0)).collect();
    let mut rig = in_op(configuration, Segment::new(devices), &[24]);
    assert!(rig.segment.power_on(24));
    let joins = (0..10 * SOON).any(|_| {
        rig.cycle();
        rig.main_device.exchanged(24)
    });
    assert!(joins, "{:?}", rig.events);
}

#[test]
fn one_that_goes_again_is_not_missed_and_comes_back() {
    let configuration = described(vec![required("first", 1), required("second", 1), optional("last", 2)]);
    let segment = Segment::new(vec![device(1, 0), device(1, 0), device(2, 0)]);
    let mut rig = in_op(configuration, segment, &[]);
    assert!(rig.main_device.exchanged(2));
    assert!(rig.segment.power_off(2));
    for _ in 0..200 {
        rig.cycle();
    }
    assert_eq!(count(&rig, |it| matches!(it, Event::Unreachable { position: 2 })), 1);
    let report = rig.cycle();
    assert!(report.all_fresh && !report.spread, "nobody is missed: {report:?}");
    assert!(rig.segment.power_on(2));
    cycles_until_all_exchange(&mut rig, &[0, 1]);
    assert_eq!(count(&rig, |it| matches!(it, Event::Recovered { position: 2, anew: true })), 1);
    assert_eq!(joined(&rig), []);
}

// feature(main-device): hot-connect groups known by alias or identity, at whatever place they are plugged
#[test]
fn a_group_joins_as_a_whole_wherever_it_is_plugged() {
    // A hub with three ports; the group of two is described last, and is plugged at the first or
    // the last of them.
    for (first, last) in [(3, 2), (2, 3)] {
        let configuration = described(vec![
            required("hub", 9),
            required("arm", 1),
            hot("gripper", 1, Some(77), Some("tool")),
            hot("screwdriver", 1, None, Some("tool")),
        ]);
        let (arm, tool) = (Attachment::new(0, last), Attachment::new(0, first));
        let (devices, attachments, off) = match first {
            3 => (
                vec![device(9, 0), device(1, 77), device(1, 0), device(1, 0)],
                vec![tool, Attachment::new(1, 1), arm],
                [1, 2],
            ),
            _ => (
                vec![device(9, 0), device(1, 0), device(1, 77), device(1, 0)],
                vec![arm, tool, Attachment::new(2, 1)],
                [2, 3],
            ),
        };
        let segment = Segment::with_topology(devices, &attachments).expect("a tree");
        let mut rig = in_op(configuration, segment, &off);
        assert_eq!(count(&rig, |it| matches!(it, Event::Absent { .. })), 2, "{:?}", rig.events);
        assert!(rig.main_device.exchanged(1), "{:?}", rig.events);
        off.into_iter().rev().for_each(|it| assert!(rig.segment.power_on(it)));
        for _ in 0..SOON {
            rig.cycle();
            assert_eq!(rig.main_device.exchanged(2), rig.main_device.exchanged(3), "all or none");
            assert!(rig.main_device.exchanged(0) && rig.main_device.exchanged(1));
            if rig.main_device.exchanged(3) {
                break;
            }
        }
        assert_eq!(joined(&rig), [2, 3], "{:?}", rig.events);
        assert_eq!((cable(&rig, 2), cable(&rig, 3)), ([(0, first as u8), (2, 0)], [(2, 1), (3, 0)]));
        let [gripper, screwdriver] = [2, 3].map(|it| rig.main_device.sub_devices()[it].station_address);
        assert_eq!(off.map(|it| station(&rig, it)), [gripper, screwdriver]);
        for _ in 0..300 {
            rig.cycle();
        }
        let difference = rig.main_device.clock().largest_difference;
        assert!(difference < Duration::from_micros(5), "{difference:?}");
    }
}

#[test]
fn a_group_that_was_there_comes_back_at_another_place() {
    let configuration = described(vec![
        required("hub", 9),
        hot("gripper", 1, Some(77), Some("tool")),
        hot("screwdriver", 2, None, Some("tool")),
        required("arm", 1),
    ]);
    // The same tool twice: before the arm, and behind it. It is never in both places.
    let tool = || [device(1, 77), device(2, 0)];
    let mut devices = vec![device(9, 0)];
    devices.extend(tool());
    devices.push(device(1, 0));
    devices.extend(tool());
    let attachments = [(0, 3), (1, 1), (0, 1), (0, 2), (4, 1)].map(|(at, port)| Attachment::new(at, port));
    let segment = Segment::with_topology(devices, &attachments).expect("a tree");
    let mut rig = in_op(configuration, segment, &[4, 5]);
    assert!(rig.cycle().all_fresh, "{:?}", rig.events);
    for (from, to, port) in [([1, 2], [4, 5], 2), ([4, 5], [1, 2], 3)] {
        from.into_iter().for_each(|it| assert!(rig.segment.power_off(it)));
        for _ in 0..300 {
            rig.cycle();
        }
        assert!(rig.cycle().all_fresh && [0, 3].iter().all(|&it| rig.main_device.exchanged(it)));
        rig.events.clear();
        to.into_iter().for_each(|it| assert!(rig.segment.power_on(it)));
        cycles_until_all_exchange(&mut rig, &[0, 3]);
        assert_eq!(to.map(|it| station(&rig, it)), [0x1002, 0x1003]);
        assert_eq!((cable(&rig, 1), cable(&rig, 2)), ([(0, port), (1, 0)], [(1, 1), (2, 0)]));
        let recovered = |it: &Event| matches!(it, Event::Recovered { position: 1 | 2, .. });
        assert_eq!(count(&rig, recovered), 2, "{:?}", rig.events);
        for _ in 0..300 {
            rig.cycle();
        }
        assert_eq!(rig.main_device.clock().reference, Some(0));
        let difference = rig.main_device.clock().largest_difference;
        assert!(difference < Duration::from_micros(5), "{difference:?}");
    }
}

#[test]
fn line_continues_while_one_joins_at_its_end() {
    let sub_devices = vec![required("first", 1), required("second", 2), optional("last", 1)];
    let segment = || Segment::new(vec![device(1, 0), device(2, 0), device(1, 0)]);
    let delays = |rig: &Rig| {
        [1, 2].map(|it| {
            let mut bytes = [0; 4];
            rig.segment.sub_devices()[it].peek(register::dc::SYSTEM_TIME_DELAY, &mut bytes);
            u32::from_le_bytes(bytes)
        })
    };
    let from_the_start = delays(&in_op(described(sub_devices.clone()), segment(), &[]));
    let mut rig = in_op(described(sub_devices), segment(), &[2]);
    rig.events.clear();
    assert!(rig.segment.power_on(2));
    let mut errors = 0;
    for _ in 0..SOON {
        errors += u32::from(rig.cycle().working_counter_errors > 0);
        assert!(rig.main_device.exchanged(0) && rig.main_device.exchanged(1));
    }
    assert_eq!((joined(&rig), rig.main_device.exchanged(2)), (vec![2], true));
    assert_eq!(cable(&rig, 2), [(1, 1), (2, 0)]);
    assert!(errors <= 1, "{errors} cycles with short working counters");
    let measured = delays(&rig);
    assert!(from_the_start[0] < from_the_start[1], "{from_the_start:?}");
    assert!(
        measured.iter().zip(from_the_start).all(|(one, other)| one.abs_diff(other) <= 2),
        "{measured:?}"
    );
}

#[test]
fn sub_device_present_at_start_is_found_at_any_position() {
    let configuration = described(vec![
        required("first", 1),
        hot("tool", 2, Some(5), None),
        required("second", 3),
        hot("other tool", 2, Some(6), None),
    ]);
    // On a hub's ports, in another order than described.
    let mut sub_devices = configuration.sub_devices.clone().unwrap_or_default();
    sub_devices.insert(0, required("hub", 9));
    let devices = vec![device(9, 0), device(2, 6), device(1, 0), device(3, 0)];
    let attachments = [(0, 3), (0, 1), (0, 2)].map(|(at, port)| Attachment::new(at, port));
    let segment = Segment::with_topology(devices, &attachments).expect("a star");
    let mut rig = in_op(described(sub_devices), segment, &[]);
    let names: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.name.clone()).collect();
    assert_eq!(names, ["hub", "first", "tool", "second", "other tool"]);
    let absent: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.is_absent()).collect();
    assert_eq!(absent, [false, false, true, false, false]);
    assert!(rig.cycle().all_fresh);
    assert_eq!([0, 1, 2, 3].map(|it| station(&rig, it)), [0x1001, 0x1005, 0x1002, 0x1004]);
}

#[test]
fn unexpected_sub_device_stays_in_init_and_is_named() {
    let described_as = vec![required("first", 1), optional("second", 2), required("third", 3)];
    let devices = vec![device(1, 0), device(8, 0), device(3, 0)];
    let mut rig = in_op(described(described_as), Segment::new(devices), &[]);
    let is_it = |it: &Event| {
        let Event::Stranger { place: 1, identity: found, expected, known: None } = it else { return false };
        *found == identity(8) && *expected == Some(1)
    };
    assert_eq!(count(&rig, is_it), 1, "{:?}", rig.events);
    assert_eq!(rig.segment.sub_devices()[1].al_status(), AlStatus::in_state(AlState::Init));
    assert!(rig.main_device.exchanged(0) && rig.main_device.exchanged(2));
    assert!(rig.cycle().all_fresh);
}

// feature(main-device): a request to a SubDevice that is gone is refused at once
#[test]
fn requests_to_one_that_is_gone_are_refused_at_once() {
    let configuration = described(vec![required("first", 1), required("second", 1), optional("third", 2)]);
    let mut rig = in_op(configuration, Segment::new(vec![device(1, 0), device(1, 0), device(2, 0)]), &[2]);
    let request = |position| MailboxRequest {
        position,
        service: MailboxService::Upload { index: 0x1008, sub_index: 0, complete_access: false },
        data: Vec::with_capacity(100),
    };
    let refusal =
        |rig: &mut Rig, position| rig.main_device.submit(request(position)).map_err(|it| it.result);
    assert_eq!(refusal(&mut rig, 2), Err(Err(MailboxError::Gone)));
    assert_eq!(refusal(&mut rig, 1), Ok(()));
    for _ in 0..200 {
        rig.cycle();
    }
    assert_eq!(count(&rig, |it| matches!(it, Event::Mailbox(outcome) if outcome.result.is_ok())), 1);
    // The same of a required one, once it is known to be gone.
    assert!(rig.segment.power_off(1));
    for _ in 0..200 {
        rig.cycle();
    }
    assert_eq!(refusal(&mut rig, 1), Err(Err(MailboxError::Gone)));
}

#[derive(Clone, Copy, Debug)]
enum Blow {
    Off(usize),
    On(usize),
    Cycle(usize),
    Pull(usize),
    Plug(usize),
    Wait(usize),
}

fn blow() -> impl Strategy<Value = Blow> {
    prop_oneof![
        (1_usize..6).prop_map(Blow::Off),
        (1_usize..6).prop_map(Blow::On),
        (1_usize..6).prop_map(Blow::Cycle),
        (0_usize..5).prop_map(Blow::Pull),
        (0_usize..5).prop_map(Blow::Plug),
        (0_usize..500).prop_map(Blow::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// SubDevices join and leave at any time: when all have power and cables, all are in Op.
    #[test]
    fn any_coming_and_going_ends_in_op(first in 1_usize..6, blows in proptest::collection::vec(blow(), 0..12)) {
        let configuration = described(vec![
            required("first", 1),
            optional("second", 2),
            optional("third", 1),
            hot("gripper", 2, Some(9), Some("tool")),
            hot("screwdriver", 3, None, Some("tool")),
            optional("last", 4),
        ]);
        let devices = [(1, 0), (2, 0), (1, 0), (2, 9), (3, 0), (4, 0)].map(|(kind, alias)| device(kind, alias));
        let mut rig = in_op(configuration, Segment::new(devices.into()), &[first]);
        for blow in blows {
            match blow {
                Blow::Off(it) => drop(rig.segment.power_off(it)),
                Blow::On(it) => drop(rig.segment.power_on(it)),
                Blow::Cycle(it) => drop(rig.segment.power_cycle(it)),
                Blow::Pull(it) => drop(rig.segment.disconnect(it, 1)),
                Blow::Plug(it) => drop(rig.segment.connect(it, 1)),
                Blow::Wait(cycles) => (0..cycles).for_each(|_| _ = rig.cycle()),
            }
        }
        for it in 0..6 {
            rig.segment.power_on(it);
            rig.segment.connect(it, 1);
        }
        let mut whole = 0;
        for _ in 0..12_000 {
            rig.cycle();
            let all = (0..6).all(|it| rig.main_device.exchanged(it));
            whole = if all { whole + 1 } else { 0 };
            if whole > 50 {
                break;
            }
        }
        prop_assert!(whole > 50, "{:?}", rig.events);
        let states: Vec<_> = rig.segment.sub_devices().iter().map(|it| it.al_status()).collect();
        prop_assert_eq!(states, vec![AlStatus::in_state(AlState::Op); 6]);
        prop_assert!(rig.main_device.sub_devices().iter().all(|it| !it.is_absent()));
        prop_assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    }
}
