//! A drive in profile position mode.

use types::AxisMode;

use super::*;

/// One in Operation enabled and its mode, at `position`, which acknowledges set-points or not.
fn shown(position: i32, acknowledges: bool) -> Option<DriveInput> {
    let acknowledged = if acknowledges { Statusword::SET_POINT_ACKNOWLEDGE } else { 0 };
    let statusword = Statusword(State::OperationEnabled.statusword() | acknowledged);
    let mode = Some(ModeOfOperation::ProfilePosition);
    Some(DriveInput { statusword, position, mode, ..DriveInput::default() })
}

fn to(target_position: i32) -> DriveCommand {
    DriveCommand { request: Request::Enable, target_position, ..DriveCommand::default() }
}

/// An enabled drive at standstill at 100, with 100 handed over.
fn standing() -> Drive {
    let mut drive = Drive::in_mode(AxisMode::ProfilePosition, 1);
    drive.update(shown(100, false), to(0));
    assert!(drive.just_enabled() && drive.phase() == Phase::Holding);
    assert_eq!((drive.holds_at(), drive.last_output().controlword.0), (100, 0x0F));
    drive.update(shown(100, false), to(100));
    drive.update(shown(100, true), to(100));
    drive.update(shown(100, false), to(100));
    drive
}

fn word(drive: &Drive) -> (u16, i32) {
    (drive.last_output().controlword.0, drive.last_output().target_position)
}

#[test]
fn destination_is_handed_over_once() {
    let mut drive = standing();
    assert_eq!(word(&drive), (0x0F, 100));
    drive.update(shown(100, false), to(1_000_000));
    assert_eq!(word(&drive), (0x3F, 1_000_000), "bits 4 and 5");
    assert_eq!((drive.phase(), drive.refused_targets()), (Phase::Following, 0));
    drive.update(shown(120, true), to(1_000_000));
    assert_eq!(word(&drive), (0x0F, 1_000_000), "it has acknowledged");
    for position in [500, 1_000] {
        drive.update(shown(position, false), to(1_000_000));
        assert_eq!(word(&drive), (0x0F, 1_000_000));
    }
    drive.update(shown(2_000, false), to(-5));
    assert_eq!(word(&drive), (0x3F, -5), "another takes its place");
}

#[test]
fn halt_is_cleared_with_the_next_set_point() {
    let mut drive = standing();
    drive.update(shown(100, false), to(1_000_000));
    let halt = DriveCommand { request: Request::Halt, ..to(1_000_000) };
    for position in [200, 300] {
        drive.update(shown(position, true), halt);
        assert_eq!(word(&drive), (0x10F, position), "its own place, and no new set-point");
        assert_eq!(drive.phase(), Phase::Holding);
    }
    // It still acknowledges the previous one.
    drive.update(shown(310, true), to(310));
    assert_eq!(word(&drive).0 & 0x110, 0x100, "halted until it can be handed over");
    drive.update(shown(310, false), to(310));
    assert_eq!(word(&drive), (0x3F, 310), "with it the halt goes");
}

#[test]
fn missing_input_blocks_set_points_and_passes_halt_on() {
    let mut drive = standing();
    drive.update(shown(100, false), to(5_000));
    drive.update(shown(100, true), to(5_000));
    for _ in 0..5 {
        drive.update(None, to(9_000));
        assert_eq!(word(&drive), (0x0F, 5_000));
    }
    drive.update(None, DriveCommand { request: Request::Halt, ..to(9_000) });
    assert_eq!(word(&drive), (0x10F, 5_000));
    // Inputs are back: the previous motion has ended.
    drive.update(shown(400, false), to(400));
    assert_eq!(word(&drive), (0x3F, 400));
}

#[test]
fn set_points_wait_for_the_mode_display() {
    let mut drive = Drive::in_mode(AxisMode::ProfilePosition, 1);
    assert_eq!(drive.mode_of_operation(), ModeOfOperation::ProfilePosition);
    let other = |position| {
        shown(position, false).map(|it| DriveInput { mode: Some(ModeOfOperation::Homing), ..it })
    };
    for position in [1, 2, 3] {
        drive.update(other(position), to(9_000));
        assert_eq!((word(&drive), drive.phase()), ((0x0F, position), Phase::Holding));
    }
    drive.update(shown(3, false), to(3));
    assert_eq!(word(&drive), (0x3F, 3));
}

// feature(cia402): modes change from and to profile modes at standstill: halted until the drive shows the mode
#[test]
fn a_mode_changes_from_and_to_a_profile_mode_under_a_halt() {
    let csp = |position| shown(position, false).map(|it| DriveInput { mode: Some(CSP), ..it });
    let mut drive = standing();
    drive.update(shown(100, false), to(1_000_000));
    drive.update(shown(200, false), DriveCommand { request: Request::Halt, ..to(1_000_000) });
    assert!(drive.change_mode(CyclicMode::Position) && drive.is_changing_mode());
    assert_eq!((drive.phase(), drive.mode_of_operation()), (Phase::Holding, CSP));
    for position in [300, 310] {
        drive.update(shown(position, false), to(9_000));
        assert_eq!(word(&drive), (0x10F, position), "the old destination is not gone on to");
    }
    drive.update(None, to(9_000));
    assert_eq!(word(&drive), (0x10F, 310));
    drive.update(csp(311), to(311));
    assert_eq!((word(&drive), drive.phase()), ((0x0F, 311), Phase::Following));
    assert!(!drive.is_changing_mode());
    // And back: no set-point is handed over until it works in profile position.
    assert!(drive.change_mode(AxisMode::ProfilePosition));
    drive.update(csp(311), to(5_000));
    assert_eq!(word(&drive), (0x10F, 311));
    drive.update(shown(311, false), to(5_000));
    assert_eq!(word(&drive), (0x3F, 5_000));
}

const CSP: ModeOfOperation = ModeOfOperation::CyclicSynchronousPosition;

#[test]
fn profile_velocity_and_torque_work_like_csv_and_cst() {
    for (mode, number) in [(AxisMode::ProfileVelocity, 3), (AxisMode::ProfileTorque, 4)] {
        let mut drive = Drive::in_mode(mode, STEP);
        assert_eq!(drive.mode_of_operation().number(), number);
        for _ in 0..2 {
            drive.update(seen(State::OperationEnabled, 5), wanting(Request::Enable));
        }
        let output = drive.last_output();
        let expected = if number == 3 { (500, 0) } else { (0, 50) };
        assert_eq!((output.target_velocity, output.target_torque), expected, "{mode:?}");
        drive.update(None, wanting(Request::Halt));
        let output = drive.last_output();
        assert_eq!((output.target_velocity, output.target_torque), (0, 0), "{mode:?}");
        assert!(output.controlword.halt());
    }
}
