//! Commands reach the other SubDevices: a short working counter costs only the inputs of the
//! missing ones, from the next cycle on.

use crate::rig;

use std::time::Duration;

use ethercat::al::{AlControl, AlState};
use ethercat::link::{MAXIMUM_FRAME_LENGTH, Segment as _};
use ethercat::main_device::{
    BringUpPhase, BusError, Configuration, CycleReport, Event, SubDeviceConfiguration,
};
use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::register::{self, EscFeatures};
use ethercat::sii::Identity;
use ethercat::time::Instant;
use ethercat::wire::{Command, frame::places};
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{Application, ProcessDataLengths};
use onbeat_simulator::segment::Attachment;
use onbeat_simulator::{EscDescription, Segment, SubDevice};
use proptest::prelude::*;

use rig::devices::{is_of, numbered, numbered_on, take_part, taken, write};
use rig::{PERIOD, Rig, described, to_op};

/// Complete cycles that end the spread layout.
const WHOLE_AGAIN: usize = 10;

fn in_op(devices: Vec<SubDevice>) -> Rig {
    let mut rig = Rig::new(to_op(), devices);
    rig.run_up();
    rig
}

fn line(count: usize) -> Vec<SubDevice> {
    (0..count).map(|number| numbered(number, 1)).collect()
}

/// Runs one cycle with unique outputs. Fresh inputs must be of this cycle, and of the right
/// SubDevice; and where the outputs of the previous cycle were taken, of a SubDevice that received
/// them.
fn cycle(rig: &mut Rig) -> CycleReport {
    let count = rig.main_device.sub_devices().len();
    let mut told = Vec::new();
    for position in 0..count {
        let taken = rig.main_device.outputs_taken(position);
        let outputs = <&mut [u8; 8]>::try_from(rig.main_device.outputs_mut(position)).expect("8 bytes");
        told.push(taken.then_some(u64::from_le_bytes(*outputs)));
        *outputs = (rig.cycles + 1).to_le_bytes();
    }
    let sent = rig.now;
    let report = rig.cycle();
    for (position, told) in told.into_iter().enumerate() {
        let inputs = rig.main_device.inputs(position);
        if rig.main_device.inputs_fresh(position) {
            assert!(is_of(inputs, position, sent, rig.now), "SubDevice {position} at {sent:?}");
            assert!(
                told.is_none_or(|it| taken(inputs) == it),
                "SubDevice {position} was not told {told:?}"
            );
        }
    }
    let exchanged = (0..count).all(|it| rig.main_device.exchanged(it));
    assert_eq!(report.all_fresh, exchanged && report.frames_lost == 0);
    report
}

fn each(rig: &Rig, what: impl Fn(usize) -> bool) -> Vec<bool> {
    (0..rig.main_device.sub_devices().len()).map(what).collect()
}

fn exchanged(rig: &Rig) -> Vec<bool> {
    each(rig, |position| rig.main_device.exchanged(position))
}

/// True for the first `present` of `count`, else false.
fn first(present: usize, count: usize) -> Vec<bool> {
    (0..count).map(|position| position < present).collect()
}

/// Cycles until the whole layout is back; all of them must be complete.
fn cycles_until_whole(rig: &mut Rig) -> usize {
    for number in 0..1000 {
        let report = cycle(rig);
        assert!(report.all_fresh, "{report:?}");
        if !report.spread {
            return number;
        }
    }
    panic!("spread for ever");
}

// feature(main-device): a short working counter affects only the missing SubDevices from the next cycle on, and ends when all are back
#[test]
fn drives_before_cut_cable_are_commanded_from_second_cycle() {
    let mut rig = in_op(line(8));
    assert_eq!(rig.main_device.working_counters().count(), 1);
    let whole = cycle(&mut rig);
    assert!(whole.all_fresh && !whole.spread);

    assert!(rig.segment.disconnect(3, 1));
    let report = cycle(&mut rig);
    assert_eq!((report.spread, report.working_counter_errors), (false, 1));
    assert_eq!(exchanged(&rig), [false; 8]);
    for _ in 0..50 {
        let report = cycle(&mut rig);
        // An LWR and an LRD each.
        assert_eq!((report.spread, report.working_counter_errors), (true, 8));
        assert_eq!(exchanged(&rig), first(4, 8));
        assert_eq!(each(&rig, |it| rig.main_device.outputs_taken(it)), first(4, 8));
    }

    assert!(rig.segment.connect(3, 1));
    assert_eq!(cycles_until_whole(&mut rig), WHOLE_AGAIN);
    assert_eq!(rig.main_device.working_counters().count(), 1);
    let unrest = |event: &Event| matches!(event, Event::Failed(_) | Event::StateChanged { .. });
    assert!(!rig.events.iter().any(unrest), "{:?}", rig.events);
}

// feature(main-device): the same for trees, SubDevices outside Op or without LRW, inputs of several datagrams, a thousand SubDevices
#[test]
fn a_branch_cut_off_in_mid_tree_blinds_the_branch() {
    // 1 and 2 are attached to port 3 of 0, 3 and 4 behind it to port 1.
    let hangs = [(0, 3), (1, 1), (0, 1), (3, 1)].map(|(parent, port)| Attachment::new(parent, port));
    let segment = Segment::with_topology(line(5), &hangs).expect("a tree");
    let mut rig = Rig::on(to_op(), segment);
    rig.run_up();
    assert!(rig.segment.disconnect(0, 3));
    cycle(&mut rig);
    for _ in 0..50 {
        cycle(&mut rig);
        assert_eq!(exchanged(&rig), [true, false, false, true, true]);
    }
    assert!(rig.segment.connect(0, 3));
    assert_eq!(cycles_until_whole(&mut rig), WHOLE_AGAIN);
}

// feature(main-device): a short working counter affects only the missing SubDevices from the next cycle on, and ends when all are back
#[test]
fn a_loose_contact_leaves_the_layout_spread() {
    let mut rig = in_op(line(4));
    take_part(&mut rig, 2, false, false);
    cycle(&mut rig);
    for _ in 0..20 {
        take_part(&mut rig, 2, false, false);
        assert!(cycle(&mut rig).spread);
        assert_eq!(exchanged(&rig), [true, true, false, true]);
        take_part(&mut rig, 2, true, true);
        for _ in 1..WHOLE_AGAIN {
            let report = cycle(&mut rig);
            assert!(report.spread && report.all_fresh);
        }
    }
    assert_eq!(cycles_until_whole(&mut rig), 1);
}

// feature(main-device): the same for trees, SubDevices outside Op or without LRW, inputs of several datagrams, a thousand SubDevices
#[test]
fn sub_device_out_of_op_still_sends_inputs() {
    let mut rig = in_op(line(4));
    // Like an ESC that leaves Op: its outputs' SyncManager is off.
    write(&mut rig, 1, register::AL_CONTROL, &AlControl::request(AlState::SafeOp).bits().to_le_bytes());
    take_part(&mut rig, 1, false, true);
    cycle(&mut rig);
    assert_eq!(exchanged(&rig), [false; 4]);
    for _ in 0..150 {
        let report = cycle(&mut rig);
        assert_eq!(report.working_counter_errors, 1);
        assert_eq!(each(&rig, |it| rig.main_device.inputs_fresh(it)), [true; 4]);
        assert_eq!(each(&rig, |it| rig.main_device.outputs_taken(it)), [true, false, true, true]);
        assert_eq!(exchanged(&rig), [true, false, true, true]);
    }
    let left = |event: &Event| matches!(event, Event::StateChanged { position: 1, .. });
    assert!(rig.events.iter().any(left), "{:?}", rig.events);
}

// feature(main-device): the same for trees, SubDevices outside Op or without LRW, inputs of several datagrams, a thousand SubDevices
#[test]
fn sub_device_refusing_lrw_is_identified() {
    let bits = EscDescription::FEATURES.bits | 1 << 9;
    let no_lrw = EscDescription { features: EscFeatures { bits }, ..EscDescription::default() };
    for missing in 0..3 {
        let mut rig = in_op(vec![numbered(0, 1), numbered_on(no_lrw.clone(), 1, 1), numbered(2, 1)]);
        assert_eq!(rig.main_device.working_counters().count(), 2);
        take_part(&mut rig, missing, false, false);
        cycle(&mut rig);
        assert_eq!(exchanged(&rig), [false; 3]);
        for _ in 0..30 {
            cycle(&mut rig);
            assert_eq!(exchanged(&rig), [0, 1, 2].map(|it| it != missing));
        }
        take_part(&mut rig, missing, true, true);
        assert_eq!(cycles_until_whole(&mut rig), WHOLE_AGAIN);
    }
}

/// An ESC with space for inputs of several datagrams.
fn large() -> EscDescription {
    EscDescription { ram_kib: 60, ..EscDescription::default() }
}

// feature(main-device): the same for trees, SubDevices outside Op or without LRW, inputs of several datagrams, a thousand SubDevices
#[test]
fn inputs_cut_over_datagrams_and_others_do_not_blind_each_other() {
    for missing in 0..4 {
        let devices = vec![
            numbered(0, 1),
            numbered_on(large(), 1, 150),
            numbered_on(large(), 2, 100),
            numbered(3, 1),
        ];
        let mut rig = in_op(devices);
        cycle(&mut rig);
        take_part(&mut rig, missing, false, false);
        for number in 0..30 {
            cycle(&mut rig);
            if number > 0 {
                assert_eq!(exchanged(&rig), [0, 1, 2, 3].map(|it| it != missing));
            }
        }
        take_part(&mut rig, missing, true, true);
        // A buffer left open has to be read out once.
        cycle(&mut rig);
        assert!(cycles_until_whole(&mut rig) <= WHOLE_AGAIN);
    }
}

#[test]
fn a_target_below_op_is_spread_too_and_the_way_up_is_not() {
    let configuration = Configuration { target: AlState::SafeOp, ..to_op() };
    let mut rig = Rig::new(configuration, line(3));
    rig.pump_to(BringUpPhase::PreOp);
    rig.cycle_to(BringUpPhase::SafeOp, 100);
    take_part(&mut rig, 1, false, false);
    rig.cycle();
    assert!(rig.cycle().spread);
    assert_eq!(each(&rig, |it| rig.main_device.inputs_fresh(it)), [true, false, true]);

    // Still one short: Op is not requested. Complete again, still spread: Op is requested once the
    // layout is whole too.
    rig.main_device.request_state(AlState::Op);
    for _ in 0..100 {
        rig.cycle();
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::SafeOp);
    take_part(&mut rig, 1, true, true);
    for _ in 0..WHOLE_AGAIN {
        rig.cycle();
        assert_eq!(rig.main_device.phase(), BringUpPhase::SafeOp);
    }
    rig.cycle_to(BringUpPhase::Op, 100);
    assert!(!cycle(&mut rig).spread);
}

#[test]
fn bring_up_waits_for_missing_sub_device() {
    let mut rig = Rig::new(to_op(), line(3));
    rig.pump_to(BringUpPhase::PreOp);
    rig.cycle_to(BringUpPhase::ToSafeOp, 100);
    take_part(&mut rig, 1, false, false);
    for _ in 0..100 {
        rig.cycle();
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::SafeOp, "{:?}", rig.events);
    take_part(&mut rig, 1, true, true);
    rig.cycle_to(BringUpPhase::Op, 100);
    assert!(cycle(&mut rig).all_fresh);
}

/// Runs a cycle on a bus that ignores LRW without reporting it.
fn cycle_without_lrw(rig: &mut Rig) {
    let end = rig.now + PERIOD;
    let mut buffer = [0; MAXIMUM_FRAME_LENGTH];
    rig.main_device.begin_cycle(rig.now);
    while let Some(length) = rig.main_device.poll_transmit(rig.now, &mut buffer) {
        let frame = &mut buffer[..length];
        assert!(rig.segment.process_frame(rig.now, frame));
        let lrw = places(frame).find(|it| it.header.command == Command::Lrw);
        if let Some(lrw) = lrw {
            frame[lrw.working_counter()..lrw.end()].fill(0);
        }
        rig.main_device.handle_frame(rig.now, frame);
    }
    rig.events.extend(std::iter::from_fn(|| rig.main_device.poll_event()));
    rig.main_device.end_cycle(rig.now);
    rig.now = end;
    rig.segment.advance(end);
}

#[test]
fn op_needs_complete_process_data_in_shared_datagrams() {
    let state_timeout = Duration::from_secs(1);
    let configuration = Configuration { target: AlState::SafeOp, state_timeout, ..to_op() };
    let mut rig = Rig::new(configuration, line(3));
    rig.pump_to(BringUpPhase::PreOp);
    for _ in 0..100 {
        cycle_without_lrw(&mut rig);
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::SafeOp);
    rig.main_device.request_state(AlState::Op);
    for _ in 0..1000 {
        cycle_without_lrw(&mut rig);
        assert!(
            rig.main_device.phase() != BringUpPhase::ToOp && rig.main_device.phase() != BringUpPhase::Op
        );
    }
    let error = rig.failure().expect("it gave up");
    assert!(matches!(error, BusError::IncompleteProcessData { .. }), "{error}");
}

fn grouped(names: &[Option<&str>]) -> Configuration {
    let of = |name: &Option<&str>| SubDeviceConfiguration {
        group: name.map(str::to_owned),
        ..SubDeviceConfiguration::default()
    };
    described(names.iter().map(of).collect())
}

// feature(main-device): groups of SubDevices that stand and fall together
#[test]
fn group_members_are_fresh_or_stale_together() {
    let names = [Some("beam"), Some("beam"), None, Some("lift"), Some("beam"), Some("lift")];
    let mut rig = Rig::new(grouped(&names), line(6));
    rig.run_up();
    let fallen = |missing: usize| {
        let falls = |it: usize| it == missing || names[it].is_some() && names[it] == names[missing];
        (0..6).map(|it| !falls(it)).collect::<Vec<bool>>()
    };
    for missing in 0..6 {
        // Only its inputs: the outputs of all are taken.
        take_part(&mut rig, missing, true, false);
        cycle(&mut rig);
        for _ in 0..10 {
            let report = cycle(&mut rig);
            // The first two of the beam share datagrams.
            assert_eq!(rig.main_device.working_counters().count(), 10);
            assert_eq!(report.working_counter_errors, 1);
            assert_eq!(exchanged(&rig), fallen(missing), "{missing} missing");
            assert_eq!(each(&rig, |it| rig.main_device.inputs_fresh(it)), fallen(missing));
            assert_eq!(each(&rig, |it| rig.main_device.outputs_taken(it)), [true; 6]);
        }
        take_part(&mut rig, missing, true, true);
        assert_eq!(cycles_until_whole(&mut rig), WHOLE_AGAIN);
    }
}

/// Two bytes out, two bytes in.
struct Small;

impl Application for Small {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 2, inputs: 2 }
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, _inputs: &mut [u8]) {}
}

fn small() -> SubDevice {
    let pdos = |index, sync_manager, object| {
        let entries = vec![PdoEntry::from_mapping_value(object)];
        let (fixed, name) = (true, String::new());
        vec![Pdo { index, sync_manager: Some(sync_manager), fixed, name, entries }]
    };
    let mapping =
        PdoMapping { outputs: pdos(0x1600, 2, 0x7000_0010), inputs: pdos(0x1A00, 3, 0x6000_0010) };
    let image = with_coe(Identity::default(), "small", mapping).image();
    SubDevice::from_sii(&image.emit(), Box::new(Small))
}

// feature(main-device): the same for trees, SubDevices outside Op or without LRW, inputs of several datagrams, a thousand SubDevices
#[test]
fn thousand_sub_devices_share_datagrams_in_a_short_cycle() {
    const COUNT: usize = 1000;
    const MISSING: usize = 500;
    // Each with two datagrams of 14 bytes: 2.3 ms on the wire.
    for (period, blinded) in [(4, 1), (1, 8)] {
        let period = Duration::from_millis(period);
        let configuration = Configuration { period, ..to_op() };
        let mut rig = Rig::new(configuration, (0..COUNT).map(|_| small()).collect());
        rig.run_up();
        take_part(&mut rig, MISSING, false, false);
        rig.cycle();
        for _ in 0..3 {
            let report = rig.cycle();
            assert_eq!((report.spread, report.frames_lost, report.working_counter_errors), (true, 0, 2));
            let bytes: usize = rig.main_device.process_image_bytes().0 * 2;
            let datagrams = rig.main_device.working_counters().count();
            let wire = Duration::from_nanos(80) * (bytes + 12 * datagrams) as u32;
            assert!(wire < period && report.frames_sent <= 32, "{wire:?}, {report:?}");
            let blind: Vec<_> = (0..COUNT).filter(|&it| !rig.main_device.exchanged(it)).collect();
            assert!(blind.contains(&MISSING) && blind.len() <= blinded, "{blind:?}");
        }
        take_part(&mut rig, MISSING, true, true);
        for _ in 0..WHOLE_AGAIN {
            rig.cycle();
        }
        let report = rig.cycle();
        assert!(report.all_fresh && !report.spread && report.frames_sent < 8, "{report:?}");
    }
}

/// True for outputs, and for inputs, that are missing.
type Missing = Vec<(bool, bool)>;

fn anyone_missing(count: usize) -> impl Strategy<Value = Missing> {
    let one = prop_oneof![3 => Just((false, false)), 1 => any::<(bool, bool)>()];
    prop_oneof![1 => Just(vec![(false, false); count]), 3 => prop::collection::vec(one, count)]
}

/// Blocks of inputs, and perhaps a group.
type Device = (usize, Option<&'static str>);

/// SubDevices, and the missing ones with the number of cycles.
fn flapping() -> impl Strategy<Value = (Vec<Device>, Vec<(Missing, usize)>)> {
    let group = prop_oneof![2 => Just(None), 1 => Just(Some("a")), 1 => Just(Some("b"))];
    let blocks = prop_oneof![8 => 1..4_usize, 1 => Just(40), 1 => Just(100)];
    prop::collection::vec((blocks, group), 1..9).prop_flat_map(|devices| {
        let count = devices.len();
        (Just(devices), prop::collection::vec((anyone_missing(count), 1..14_usize), 1..8))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    // feature(main-device): a short working counter affects only the missing SubDevices from the next cycle on, and ends when all are back
    #[test]
    fn present_sub_devices_are_stale_only_in_cycle_after_change((devices, script) in flapping()) {
        let groups: Vec<_> = devices.iter().map(|&(_, group)| group).collect();
        let is_cut: Vec<_> = devices.iter().map(|&(blocks, _)| blocks * 24 > 1376).collect();
        let all = devices.iter().enumerate().map(|(number, &(blocks, _))| numbered_on(large(), number, blocks));
        // Enough time for separate datagrams of all.
        let configuration = Configuration { period: Duration::from_millis(10), ..grouped(&groups) };
        let mut rig = Rig::new(configuration, all.collect());
        rig.run_up();
        cycle(&mut rig);
        let count = devices.len();
        let nobody = vec![(false, false); count];
        let mut before = nobody.clone();
        let mut whole = 0;
        for (missing, cycles) in script.into_iter().chain([(nobody.clone(), 14)]) {
            for (position, &(outputs, inputs)) in missing.iter().enumerate() {
                take_part(&mut rig, position, !outputs, !inputs);
            }
            for _ in 0..cycles {
                let images: Vec<_> = (0..count).map(|it| rig.main_device.inputs(it).to_vec()).collect();
                let report = cycle(&mut rig);
                let changed = before != missing;
                whole = if missing == nobody { whole + 1 } else { 0 };
                prop_assert!(report.spread || changed || missing == nobody);
                prop_assert!(!report.spread || whole <= WHOLE_AGAIN + 2);
                for position in 0..count {
                    let together = |&it: &usize| it == position || groups[it].is_some() && groups[it] == groups[position];
                    let of_all = |absent: &dyn Fn(usize) -> bool| (0..count).filter(together).any(absent);
                    let (fresh, taken) = (rig.main_device.inputs_fresh(position), rig.main_device.outputs_taken(position));
                    let blind = of_all(&|it| missing[it].1);
                    let deaf = of_all(&|it| missing[it].0);
                    prop_assert!(!(blind && fresh || deaf && taken), "{position} is not there");
                    // A buffer read in part is old for one cycle more.
                    let reopened = changed && of_all(&|it| is_cut[it] && before[it].1);
                    if !changed || report.spread {
                        prop_assert_eq!(taken, !deaf);
                        prop_assert!(fresh != blind || reopened);
                    }
                    if missing[position].1 {
                        prop_assert_eq!(&images[position][..], rig.main_device.inputs(position));
                    }
                }
                before.clone_from(&missing);
            }
        }
        prop_assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    }
}
