//! Process data reaches its place and returns: over LRW, over LWR and LRD, over several frames,
//! with the SIIs of real devices, and with a SubDevice that fails.

use crate::rig;

use ethercat::al::{AlState, AlStatus};
use ethercat::al_status_code::AlStatusCode;
use ethercat::main_device::{
    BringUpPhase, Configuration, Event, ProcessDataSource, SubDeviceConfiguration,
};
use ethercat::pdo::{Pdo, PdoMapping};
use ethercat::register::EscFeatures;
use ethercat::sii::Image;
use onbeat_simulator::application::sii::pdos;
use onbeat_simulator::application::{GenericDevice, ServoDescription, ServoDrive};
use onbeat_simulator::{EscDescription, SubDevice};

use rig::devices::{echo, echo_on};
use rig::real;
use rig::{Rig, described, drive, drives, to_op};

/// Refuses LRW.
fn no_lrw() -> EscDescription {
    EscDescription {
        features: EscFeatures { bits: EscDescription::FEATURES.bits | 1 << 9 },
        ..EscDescription::default()
    }
}

/// Bytes that are unique to a SubDevice and a cycle.
fn pattern(position: usize, cycle: usize, length: usize) -> Vec<u8> {
    (0..length).map(|byte| (position * 31 + cycle * 97 + byte * 7) as u8).collect()
}

/// Writes a pattern to all outputs, cycle after cycle; the SubDevices in `echoes` must return it.
fn assert_echoed(rig: &mut Rig, echoes: impl Iterator<Item = usize> + Clone) {
    for cycle in 0..8 {
        for position in echoes.clone() {
            let outputs = rig.main_device.outputs_mut(position);
            let pattern = pattern(position, cycle, outputs.len());
            outputs.copy_from_slice(&pattern);
        }
        // Out in one cycle, back in the next.
        rig.cycle();
        let report = rig.cycle();
        assert!(report.all_fresh, "{report:?}");
        for position in echoes.clone() {
            let inputs = rig.main_device.inputs(position);
            assert!(rig.main_device.inputs_fresh(position) && !inputs.is_empty());
            assert_eq!(inputs, pattern(position, cycle, inputs.len()), "SubDevice {position}");
        }
    }
}

/// Expected working counters of one cycle in which all were correct.
fn working_counters(rig: &Rig) -> Vec<u16> {
    let each = rig.main_device.working_counters();
    each.map(|it| {
        assert!(it.is_complete());
        it.expected
    })
    .collect()
}

// feature(main-device): LRW, or LWR and LRD where one refuses LRW
#[test]
fn one_lrw_for_all() {
    let mut rig = Rig::new(to_op(), vec![echo(1), echo(3), echo(2)]);
    rig.run_up();
    assert_echoed(&mut rig, 0..3);
    assert_eq!(working_counters(&rig), [9]);
}

// feature(main-device): LRW, or LWR and LRD where one refuses LRW
#[test]
fn an_esc_that_refuses_lrw_gets_lwr_and_lrd() {
    let mut rig = Rig::new(to_op(), vec![echo(1), echo_on(no_lrw(), 3), echo(2)]);
    rig.run_up();
    assert_echoed(&mut rig, 0..3);
    assert_eq!(working_counters(&rig), [3, 3]);
}

// feature(main-device): process images of many frames, and pieces larger than one
#[test]
fn fifty_nine_drives_and_large_ones_take_several_frames() {
    let mut devices = drives(59);
    devices.extend([echo(80), echo(80), echo(80)]);
    let mut rig = Rig::new(to_op(), devices);
    rig.run_up();
    assert_echoed(&mut rig, 59..62);
    assert_eq!(rig.main_device.process_image_bytes(), (59 * 12 + 1920, 59 * 12 + 1920));
    assert!(rig.cycle().frames_sent > 3);
}

#[test]
fn two_hundred_subdevices() {
    let mut rig = Rig::new(to_op(), (0..200).map(|it| echo(1 + it % 3)).collect());
    rig.run_up();
    assert_echoed(&mut rig, 0..200);
    assert_eq!(working_counters(&rig).iter().sum::<u16>(), 600);
}

// feature(main-device): process images of many frames, and pieces larger than one
#[test]
fn one_subdevice_larger_than_a_frame() {
    let large = EscDescription { ram_kib: 32, ..EscDescription::default() };
    let mut rig = Rig::new(to_op(), vec![echo(1), echo_on(large, 400), echo(2)]);
    rig.run_up();
    assert_echoed(&mut rig, 0..3);
    assert_eq!(rig.main_device.inputs(1).len(), 3200);
    // Outputs in three parts and inputs in three, between the two others.
    assert_eq!(working_counters(&rig), [3, 1, 1, 1, 1, 1, 1, 3]);
}

fn akd(image: &Image) -> SubDevice {
    let drive = ServoDrive::new(&ServoDescription::from_sii(image)).expect("it has the AKD's objects");
    SubDevice::from_sii(&image.emit(), Box::new(drive))
}

// feature(main-device): an AKD drive and Beckhoff terminals from their SII images, to Op
#[test]
fn an_akd_drive_with_its_own_mapping() {
    let Some(image) = real("akd.bin") else { return };
    let mut rig = Rig::new(to_op(), vec![drive(0), akd(&image), drive(2)]);
    rig.run_up();
    assert_eq!((rig.main_device.inputs(1).len(), rig.main_device.sub_devices()[1].output_bytes()), (6, 6));
    assert!(rig.cycle().all_fresh);
}

#[test]
fn an_akd_drive_with_another_of_its_mappings() {
    let Some(image) = real("akd.bin") else { return };
    let all = pdos(&image);
    // Target position, controlword, torque offset; and the cyclic inputs with ten objects.
    let take = |pdos: &[Pdo], index, sync_manager| {
        let pdo = pdos.iter().find(|pdo| pdo.index == index).expect("the AKD has it").clone();
        vec![Pdo { sync_manager: Some(sync_manager), ..pdo }]
    };
    let mapping =
        PdoMapping { outputs: take(&all.outputs, 0x1724, 2), inputs: take(&all.inputs, 0x1B20, 3) };
    let configuration = SubDeviceConfiguration {
        process_data: ProcessDataSource::Explicit(mapping),
        ..SubDeviceConfiguration::default()
    };
    let mut rig = Rig::new(described(vec![configuration]), vec![akd(&image)]);
    rig.run_up();
    assert_eq!(rig.main_device.process_image_bytes(), (8, 32));
    assert!(rig.cycle().all_fresh);
}

// feature(main-device): an AKD drive and Beckhoff terminals from their SII images, to Op
#[test]
fn a_coupler_with_three_terminals() {
    let names = ["ek1100.bin", "el2004.bin", "el2828.bin", "el2889.bin"];
    let images: Vec<_> = names.into_iter().map_while(real).collect();
    if images.len() < names.len() {
        return;
    }
    let device = |image: &Image| {
        let application = GenericDevice::from_sii(image).expect("a terminal");
        SubDevice::from_sii(&image.emit(), Box::new(application))
    };
    let mut rig = Rig::new(to_op(), images.iter().map(device).collect());
    rig.run_up();
    let lengths: Vec<_> = rig.main_device.sub_devices().iter().map(|it| it.output_bytes()).collect();
    assert_eq!(lengths, [0, 1, 1, 2]);
    assert_eq!(rig.main_device.sub_devices()[2].name, images[2].name());
    assert!(rig.cycle().all_fresh);
    assert_eq!(working_counters(&rig), [3]);
}

/// Ten SubDevices of which two share a frame; all in Op.
/// Ten that are left where they fall.
fn ten_in_five_frames() -> Rig {
    let mut rig =
        Rig::new(Configuration { recovery: false, ..to_op() }, (0..10).map(|_| echo(40)).collect());
    rig.run_up();
    assert_eq!(working_counters(&rig), [6; 5]);
    rig
}

fn freshness(rig: &Rig) -> Vec<bool> {
    (0..10).map(|position| rig.main_device.inputs_fresh(position)).collect()
}

// feature(main-device): a SubDevice that leaves Op is reported, and the others stay in Op
#[test]
fn power_loss_of_one_sub_device_does_not_affect_others() {
    let mut rig = ten_in_five_frames();
    let before = rig.main_device.inputs(4).to_vec();
    rig.events.clear();
    rig.segment.power_cycle(4);
    for cycle in 0..500 {
        rig.main_device.outputs_mut(0).fill(cycle as u8);
        rig.main_device.outputs_mut(5).fill(cycle as u8);
        rig.main_device.outputs_mut(4).fill(0xEE);
        let report = rig.cycle();
        let mut fresh = [true; 10];
        fresh[4] = false;
        // At first one working counter for both: it does not show the missing one.
        fresh[5] = cycle > 0;
        assert_eq!(freshness(&rig), fresh);
        // Outputs and inputs are short together, then each.
        let short = if cycle == 0 { 1 } else { 2 };
        assert_eq!((report.working_counter_errors, report.frames_lost), (short, 0));
        assert_eq!((report.spread, report.all_fresh), (cycle > 0, false));
        assert_eq!(rig.main_device.inputs(4), before);
    }
    assert_eq!(rig.main_device.inputs(5)[0], 498_u16 as u8);
    let told = |event: &&Event| matches!(event, Event::Unreachable { position: 4 });
    assert_eq!(rig.events.iter().filter(told).count(), 1, "{:?}", rig.events);
    assert_eq!(rig.events.len(), 1, "{:?}", rig.events);
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    assert_eq!(rig.main_device.inputs(0)[0], 498_u16 as u8);
}

#[test]
fn a_cable_pulled_and_plugged_again() {
    let mut rig = ten_in_five_frames();
    rig.events.clear();
    assert!(rig.segment.disconnect(5, 1));
    for _ in 0..300 {
        rig.cycle();
        assert_eq!(freshness(&rig), [true, true, true, true, true, true, false, false, false, false]);
    }
    let unreachable = |event: &Event| match event {
        Event::Unreachable { position } => Some(*position),
        _ => None,
    };
    let mut missing: Vec<_> = rig.events.iter().filter_map(unreachable).collect();
    missing.sort_unstable();
    assert_eq!(missing, [6, 7, 8, 9], "{:?}", rig.events);

    rig.events.clear();
    assert!(rig.segment.connect(5, 1));
    for _ in 0..300 {
        rig.cycle();
    }
    // Their outputs fell back to the safe state: their state shows it, and so do the working
    // counters of their outputs.
    let report = rig.cycle();
    assert_eq!((report.working_counter_errors, report.spread), (4, true));
    assert_eq!(freshness(&rig), [true; 10], "inputs are there again");
    for position in 0..10 {
        assert_eq!(rig.main_device.exchanged(position), position < 6, "SubDevice {position}");
    }
    let watchdog = |event: &Event| match event {
        Event::StateChanged { position, status, code } => {
            let safe = AlStatus { error: true, ..AlStatus::in_state(AlState::SafeOp) };
            assert_eq!((*status, *code), (safe, AlStatusCode::SYNC_MANAGER_WATCHDOG));
            Some(*position)
        }
        _ => None,
    };
    let mut fallen: Vec<_> = rig.events.iter().filter_map(watchdog).collect();
    fallen.sort_unstable();
    assert_eq!(fallen, [6, 7, 8, 9], "{:?}", rig.events);
}

#[test]
fn a_first_cable_pulled_loses_every_frame_and_nothing_else() {
    let mut rig = ten_in_five_frames();
    assert!(rig.segment.disconnect(0, 0));
    for _ in 0..50 {
        let report = rig.cycle();
        assert_eq!(report.frames_lost, report.frames_sent);
        assert_eq!(freshness(&rig), [false; 10]);
    }
    assert!(rig.segment.connect(0, 0));
    rig.cycle();
    for _ in 0..50 {
        assert!(rig.cycle().all_fresh);
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
}
