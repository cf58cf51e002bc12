//! Bring-up and shutdown of simulated segments by this MainDevice, in virtual time.

use crate::rig;

use std::time::Duration;

use ethercat::al::AlState;
use ethercat::main_device::{
    BringUpPhase, Configuration, ConfigurationError, ExpectedIdentity, MainDevice, ProcessDataSource,
    SubDeviceConfiguration, Sync0,
};
use ethercat::pdo::Pdo;
use onbeat_simulator::application::servo::default_mapping;
use onbeat_simulator::application::sii::with_coe;
use onbeat_simulator::application::{ServoDescription, ServoDrive};
use onbeat_simulator::coe::DeviceDescription;
use onbeat_simulator::{EscDescription, SubDevice};

use rig::{DRIVE, PERIOD, Rig, described, drives, to_op};

fn configured(name: &str) -> SubDeviceConfiguration {
    SubDeviceConfiguration {
        name: name.into(),
        identity: Some(ExpectedIdentity {
            vendor_id: DRIVE.vendor_id,
            product_code: DRIVE.product_code,
            revision: Some(DRIVE.revision),
        }),
        process_data: ProcessDataSource::Explicit(default_mapping()),
        sync0: Some(Sync0 { cycle: Duration::from_millis(1), shift: Duration::from_micros(250) }),
        ..Default::default()
    }
}

fn six() -> Vec<SubDeviceConfiguration> {
    ["base", "shoulder", "elbow", "wrist 1", "wrist 2", "wrist 3"].map(configured).to_vec()
}

// feature(main-device): count, addresses, SII, identity, explicit PDO mapping by SDO, SYNC0, all SubDevices side by side to Op
#[test]
fn six_drives_reach_op_with_their_own_mapping_and_sync0() {
    let mut rig = Rig::new(described(six()), drives(6));
    rig.run_up();
    assert_eq!(rig.main_device.process_image_bytes(), (72, 72));
    for _ in 0..100 {
        let report = rig.cycle();
        assert!(
            report.all_fresh,
            "{report:?} {:?}",
            rig.main_device.working_counters().collect::<Vec<_>>()
        );
    }
    assert!(rig.segment.sub_devices().iter().all(|it| it.al_status().al_state() == Some(AlState::Op)));
}

// feature(main-device): set-up from the SII alone
#[test]
fn what_is_there_runs_by_its_sii_alone() {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.run_up();
    assert_eq!(rig.main_device.sub_devices()[2].name, "drive 2");
    assert_eq!(rig.main_device.sub_devices()[2].identity.serial, 2);
    assert_eq!(rig.main_device.process_image_bytes(), (36, 36));
}

/// Three PDOs of one SyncManager, two of them named by the configuration: they are mapped in their
/// order all the same.
#[test]
fn pdo_without_sync_manager_uses_first_of_its_direction() {
    let mut mapping = default_mapping();
    let all = mapping.outputs.remove(0);
    let entries = [&all.entries[..1], &all.entries[1..2], &all.entries[2..]];
    let pdos = (0x1600..).zip(entries);
    mapping.outputs =
        pdos.map(|(index, entries)| Pdo { index, entries: entries.to_vec(), ..all.clone() }).collect();
    let image = with_coe(DRIVE, "three PDOs", mapping.clone()).image();
    let drive = ServoDrive::new(&ServoDescription::new(DeviceDescription::from_sii(&image))).unwrap();
    let device = SubDevice::new(EscDescription::default(), image.emit(), Box::new(drive));
    mapping.outputs[1].sync_manager = None;
    let configured =
        SubDeviceConfiguration { process_data: ProcessDataSource::Explicit(mapping), ..Default::default() };
    let mut rig = Rig::new(described(vec![configured]), vec![device]);
    rig.run_up();
    let drive = &rig.main_device.sub_devices()[0];
    let target = drive.output::<i32>(0x607A, 0).unwrap();
    let torque = drive.output::<i16>(0x6071, 0).unwrap();
    assert_eq!((target.field().place().bit_offset, torque.field().place().bit_offset), (16, 80));
    let record = rig.segment.sub_device_mut(0).unwrap().servo_mut().unwrap().record();
    rig.main_device.set(target, -123_456);
    rig.main_device.set(torque, 77);
    rig.cycle();
    rig.cycle();
    let taken = record.last().unwrap();
    assert_eq!((taken.target_position, taken.target_torque), (-123_456, 77));
}

#[test]
fn the_period_is_set_in_pre_op_and_not_later() {
    let mut rig = Rig::new(to_op(), drives(3));
    rig.pump_to(BringUpPhase::PreOp);
    let too_short = Duration::from_micros(49);
    assert_eq!(rig.main_device.set_period(too_short), Err(ConfigurationError::Period { found: too_short }));
    assert_eq!(rig.main_device.set_period(2 * PERIOD), Ok(()));
    assert_eq!(rig.main_device.configuration().period, 2 * PERIOD);
    rig.run_up();
    assert!(rig.cycle().all_fresh);
    assert_eq!(rig.main_device.set_period(PERIOD), Err(ConfigurationError::Running));
    assert_eq!(rig.main_device.configuration().period, 2 * PERIOD);
}

// feature(main-device): back to Init at the end
#[test]
fn the_bus_goes_back_to_init() {
    let mut rig = Rig::new(described(six()), drives(6));
    rig.run_up();
    rig.main_device.request_state(AlState::Init);
    rig.pump_to(BringUpPhase::Down);
    assert!(rig.segment.sub_devices().iter().all(|it| it.al_status().al_state() == Some(AlState::Init)));
}

#[test]
fn the_target_can_be_raised_step_by_step() {
    let mut rig = Rig::new(Configuration { target: AlState::PreOp, ..described(six()) }, drives(6));
    rig.pump_to(BringUpPhase::PreOp);
    for (target, phase) in [
        (AlState::PreOp, BringUpPhase::PreOp),
        (AlState::SafeOp, BringUpPhase::SafeOp),
        (AlState::Op, BringUpPhase::Op),
    ] {
        rig.main_device.request_state(target);
        for _ in 0..200 {
            rig.cycle();
        }
        assert_eq!(rig.main_device.phase(), phase, "{:?}", rig.events);
        assert!(states(&rig).iter().all(|&state| state == Some(target)), "{:?}", states(&rig));
    }
}

/// After any previous MainDevice, and any end of it.
#[test]
fn a_bus_left_in_any_state_comes_up_again() {
    for target in [AlState::PreOp, AlState::SafeOp, AlState::Op] {
        for silence in [0, 50, 500].map(Duration::from_millis) {
            let mut rig = Rig::new(Configuration { target, ..described(six()) }, drives(6));
            rig.pump_to(BringUpPhase::PreOp);
            for _ in 0..200 {
                rig.cycle();
            }
            rig.pass_to(rig.now + silence, false);
            rig.main_device = MainDevice::new(described(six())).expect("as before");
            rig.run_up();
            assert!(rig.cycle().all_fresh);
        }
    }
}

#[test]
fn the_bus_goes_down_in_the_middle_of_a_cycle() {
    let mut rig = Rig::new(described(six()), drives(6));
    rig.run_up();
    rig.main_device.begin_cycle(rig.now);
    rig.transmit();
    assert_eq!(rig.main_device.awaiting(), 1);
    rig.main_device.request_state(AlState::Init);
    rig.pump_to(BringUpPhase::Down);
    assert!(states(&rig).iter().all(|&state| state == Some(AlState::Init)));
    assert!(rig.failure().is_none());
}

/// At any point of bring-up a pulled cable ends it with a sentence, without an endless wait.
#[test]
fn a_cable_pulled_during_bring_up_ends_it_with_a_sentence() {
    let whole = {
        let mut rig = Rig::new(described(six()), drives(6));
        let start = rig.now;
        rig.pump_to(BringUpPhase::PreOp);
        rig.now.since(start)
    };
    for part in 1..10 {
        for position in [0, 3] {
            let mut rig = Rig::new(described(six()), drives(6));
            let pulled = rig.now + whole * part / 10;
            while rig.now < pulled {
                rig.pump(Duration::ZERO);
            }
            assert!(rig.segment.disconnect(position, 0));
            rig.pump_to(BringUpPhase::Down);
            assert_eq!(
                rig.main_device.phase(),
                BringUpPhase::Down,
                "after {part} tenths: {:?}",
                rig.events
            );
            let sentence = rig.failure().expect("it fails").to_string();
            assert!(sentence.contains("check"), "after {part} tenths: {sentence}");
            let reachable = if position == 0 { 0 } else { 3 };
            let found = states(&rig);
            assert!(found[..reachable].iter().all(|&state| state == Some(AlState::Init)), "{found:?}");
        }
    }
}

fn states(rig: &Rig) -> Vec<Option<AlState>> {
    rig.segment.sub_devices().iter().map(|it| it.al_status().al_state()).collect()
}

// feature(main-device): bring-up hardly grows with the number of SubDevices
#[test]
fn bring_up_hardly_grows_with_the_number_of_subdevices() {
    let time = |count| {
        let mut rig = Rig::new(to_op(), drives(count));
        let start = rig.now;
        rig.pump_to(BringUpPhase::PreOp);
        assert_eq!(rig.main_device.phase(), BringUpPhase::PreOp, "{:?}", rig.failure());
        rig.now.since(start)
    };
    let (one, many) = (time(1), time(59));
    // Virtual time: the same on every machine. 59 SubDevices take more frames, but not 59 times as
    // long.
    assert!(many < one * 4, "1 SubDevice {one:?}, 59 SubDevices {many:?}");
}
