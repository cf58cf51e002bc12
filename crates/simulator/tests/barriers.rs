//! The second barrier: objects that bound the axes of a drive are written at the start, and after
//! every restart of it. The tests evaluate the true motion of a drive with raw set-points.
use crate::rig;

use std::f64::consts::TAU;

use ethercat::cia402::object::{
    FOLLOWING_ERROR_TIME_OUT, FOLLOWING_ERROR_WINDOW, HALT_OPTION_CODE, MAXIMUM_PROFILE_VELOCITY,
    MAXIMUM_TORQUE, SI_UNIT_POSITION, SOFTWARE_POSITION_LIMIT,
};
use ethercat::main_device::{
    Barrier, BarrierState, BarrierTask, BringUpPhase, ProcessDataSource, SubDeviceConfiguration, UnitValue,
};
use ethercat::sdo_abort::AbortCode;
use onbeat_simulator::SubDevice;
use onbeat_simulator::application::servo::{FOLLOWING_ERROR, default_mapping};
use rig::{Rig, described, drive};

/// Counts of a turn of the simulated drive.
const TURN: f64 = (1 << 20) as f64;

const fn write(index: u16, sub_index: u8, length: u8, value: i64) -> Barrier {
    Barrier { index, sub_index, length, task: BarrierTask::Write(value as u32) }
}

/// Half a turn either way, 2 turns/s, half the rated torque, an eighth of a turn of following error
/// for 20 ms.
fn barriers() -> Vec<Barrier> {
    let half = (TURN / 2.0) as i64;
    let velocity = UnitValue {
        unit: SI_UNIT_POSITION + 1,
        milli_counts: 2000 * TURN as u64,
        milli_counts_per_revolution: 1000 * TURN as u64,
        assumes_counts: false,
    };
    let velocity = BarrierTask::WriteInUnit(velocity);
    vec![
        write(SOFTWARE_POSITION_LIMIT, 1, 4, -half),
        write(SOFTWARE_POSITION_LIMIT, 2, 4, half),
        Barrier { index: MAXIMUM_PROFILE_VELOCITY, sub_index: 0, length: 4, task: velocity },
        write(FOLLOWING_ERROR_WINDOW, 0, 4, half / 4),
        write(FOLLOWING_ERROR_TIME_OUT, 0, 2, 20),
        write(MAXIMUM_TORQUE, 0, 2, 500),
        Barrier { index: HALT_OPTION_CODE, sub_index: 0, length: 2, task: BarrierTask::Read },
    ]
}

fn rig(barriers: Vec<Barrier>, drive: SubDevice) -> Rig {
    let process_data = ProcessDataSource::Explicit(default_mapping());
    let configuration = SubDeviceConfiguration { process_data, barriers, ..Default::default() };
    let mut rig = Rig::new(described(vec![configuration]), vec![drive]);
    rig.run_up();
    rig
}

fn states(rig: &Rig) -> Vec<BarrierState> {
    rig.main_device.sub_devices()[0].barriers().to_vec()
}

fn shown(rig: &mut Rig, index: u16, sub_index: u8) -> i64 {
    let drive = rig.segment.sub_device_mut(0).unwrap().servo_mut().unwrap();
    drive.dictionary().value(index, sub_index).unwrap()
}

/// Sends a controlword and a target position, and runs a cycle.
fn send(rig: &mut Rig, controlword: u16, position: i32) {
    let outputs = rig.main_device.outputs_mut(0);
    outputs[..2].copy_from_slice(&controlword.to_le_bytes());
    outputs[2..6].copy_from_slice(&position.to_le_bytes());
    rig.cycle();
}

fn position(rig: &Rig) -> i32 {
    i32::from_le_bytes(rig.main_device.inputs(0)[2..6].try_into().unwrap())
}

fn enable(rig: &mut Rig) {
    for controlword in [0x06, 0x07, 0x0F] {
        for _ in 0..20 {
            let here = position(rig);
            send(rig, controlword, here);
        }
    }
}

/// Farthest true position in turns and highest true speed in turns/s on the way to a raw target.
fn farthest(rig: &mut Rig, target: i32) -> (f64, f64) {
    let (mut farthest, mut fastest) = (0.0_f64, 0.0_f64);
    for _ in 0..1500 {
        send(rig, 0x0F, target);
        let plant = *rig.segment.sub_device_mut(0).unwrap().servo_mut().unwrap().axes()[0].plant();
        farthest = farthest.max((plant.position() / TAU).abs());
        fastest = fastest.max((plant.velocity() / TAU).abs());
    }
    (farthest, fastest)
}

// feature(main-device): limits of an axis are written to its drive, read back, and hold raw set-points
#[test]
fn the_second_barrier_holds_raw_set_points() {
    let mut rig = rig(barriers(), drive(3));
    let half = (TURN / 2.0) as u32;
    let active = [half.wrapping_neg(), half, 2 * TURN as u32, half / 4, 20, 500].map(BarrierState::Active);
    assert_eq!(states(&rig), [&active[..], &[BarrierState::Read(1)]].concat());
    enable(&mut rig);
    for side in [1, -1] {
        let (place, speed) = farthest(&mut rig, side * 40 * TURN as i32);
        assert!((0.49..0.51).contains(&place), "{place} turns");
        // The loops overshoot when the demand begins at full speed.
        assert!(speed < 3.0, "{speed} turns/s");
    }
    let statusword = u16::from_le_bytes(rig.main_device.inputs(0)[..2].try_into().unwrap());
    assert_eq!(statusword & 0x6F, 0x27, "it stays in Operation enabled");
}

#[test]
fn a_blocked_shaft_ends_in_the_drives_following_error() {
    let mut rig = rig(barriers(), drive(3));
    enable(&mut rig);
    // More than half the rated torque holds it.
    rig.segment.sub_device_mut(0).unwrap().servo_mut().unwrap().set_load(0, 2000);
    farthest(&mut rig, TURN as i32 / 3);
    assert_eq!(shown(&mut rig, 0x603F, 0), i64::from(FOLLOWING_ERROR));
}

#[test]
fn a_drive_that_lost_its_power_gets_its_barrier_again() {
    let mut rig = rig(barriers(), drive(3));
    assert!(rig.segment.power_cycle(0));
    for _ in 0..2000 {
        rig.cycle();
    }
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    assert!(rig.main_device.exchanged(0));
    assert_eq!(shown(&mut rig, SOFTWARE_POSITION_LIMIT, 2), (TURN / 2.0) as i64);
    assert_eq!(shown(&mut rig, MAXIMUM_TORQUE, 0), 500);
}

#[test]
fn objects_that_are_missing_or_read_only_leave_the_drive_usable() {
    // 0x6502 is read-only, 0x6073 is not there, and 0x607D has two limits.
    let lacking = vec![write(0x6502, 0, 4, 1), write(0x6073, 0, 2, 1), write(0x607D, 3, 4, 1)];
    let rig = rig(lacking, drive(3));
    assert_eq!(rig.main_device.phase(), BringUpPhase::Op);
    let expected =
        [BarrierState::Refused(AbortCode::READ_ONLY), BarrierState::Missing, BarrierState::Missing];
    assert_eq!(states(&rig), expected);
}
