use super::super::drive::homing::ANSWER_CYCLES;
use super::super::profile::Change;
use super::super::state::State;
use super::super::word::{Controlword, Statusword};
use super::*;

const ENABLED: u16 = 0x0237;
const ACKNOWLEDGED: Statusword = Statusword(ENABLED | Statusword::SET_POINT_ACKNOWLEDGE);

fn input(statusword: u16) -> Option<DriveInput> {
    Some(DriveInput { statusword: Statusword(statusword), position: 77, ..DriveInput::default() })
}

fn enabled(mode: ProfileMode) -> ProfileDrive {
    let mut drive = ProfileDrive::new(mode);
    for statusword in [0x0250, 0x0231, 0x0233, ENABLED] {
        let output = drive.update(input(statusword), Request::Enable);
        assert_eq!((output.target_position, output.target_velocity, output.target_torque), (77, 0, 0));
    }
    assert_eq!(drive.drive().state(), Some(State::OperationEnabled));
    drive
}

// feature(cia402): profile modes: handshake of set-points, target velocity and torque, changes while enabled
#[test]
fn set_point_waits_for_a_buffer_and_the_acknowledgement() {
    let mut handshake = ProfilePosition::default();
    let set_point = SetPoint { position: -9, relative: true, change: Change::AfterReached };
    assert!(handshake.hand_over(set_point));
    assert!(!handshake.hand_over(SetPoint::at(1)), "one at a time");
    for _ in 0..100 {
        assert_eq!(handshake.step(ACKNOWLEDGED), Controlword::RELATIVE, "the drive has no room");
    }
    let handed = Controlword::RELATIVE | Controlword::NEW_SET_POINT;
    for _ in 0..100 {
        assert_eq!(handshake.step(Statusword(ENABLED)), handed, "not acknowledged yet");
    }
    assert_eq!((handshake.target(), handshake.progress()), (-9, SetPointProgress::HandingOver));
    assert_eq!(handshake.step(ACKNOWLEDGED), 0);
    let reached = ENABLED | Statusword::TARGET_REACHED;
    handshake.step(Statusword(reached | Statusword::SET_POINT_ACKNOWLEDGE));
    assert_eq!(handshake.progress(), SetPointProgress::Moving, "one still waits in the drive");
    handshake.step(Statusword(reached));
    assert_eq!(handshake.progress(), SetPointProgress::Reached);
}

#[test]
fn replacing_set_point_needs_no_buffer_but_an_edge() {
    let mut handshake = ProfilePosition::default();
    handshake.hand_over(SetPoint { change: Change::Immediately, ..SetPoint::at(5) });
    let new = |bits: u16| bits & Controlword::NEW_SET_POINT != 0;
    let low = (0..1_000).take_while(|_| !new(handshake.step(ACKNOWLEDGED))).count() as u32;
    assert_eq!(low, ANSWER_CYCLES);
    let high = (0..1_000).take_while(|_| new(handshake.step(ACKNOWLEDGED))).count() as u32;
    assert_eq!(high, ANSWER_CYCLES);
    assert_eq!(handshake.progress(), SetPointProgress::Moving);
}

// feature(cia402): profile modes: handshake of set-points, target velocity and torque, changes while enabled
#[test]
fn set_points_are_taken_only_while_enabled() {
    let mut drive = ProfileDrive::new(ProfileMode::Position);
    assert!(!drive.move_to(SetPoint::at(5)), "not enabled");
    let mut drive = enabled(ProfileMode::Position);
    assert!(drive.move_to(SetPoint::at(5)));
    let output = drive.update(input(ENABLED), Request::Enable);
    assert_eq!((output.controlword, output.target_position), (Controlword(0x1F), 5));
    assert_eq!(drive.update(None, Request::Enable).controlword, Controlword(0x1F), "as it was");
    assert_eq!(drive.update(input(0x0218), Request::Enable).target_position, 77, "a fault");
    assert_eq!(drive.progress(), SetPointProgress::Interrupted);
    for statusword in [0x0250, 0x0231, 0x0233, ENABLED, ENABLED] {
        let output = drive.update(input(statusword), Request::Enable);
        assert_eq!(output.controlword.0 & Controlword::NEW_SET_POINT, 0);
    }
}

#[test]
fn mode_bits_are_not_sent_in_another_mode() {
    let mut drive = enabled(ProfileMode::Position);
    drive.move_to(SetPoint::at(5));
    let homing = input(ENABLED).map(|it| DriveInput { mode: Some(ModeOfOperation::Homing), ..it });
    let output = drive.update(homing, Request::Enable);
    assert_eq!((output.controlword, output.target_position), (Controlword(0x0F), 77));
    assert_eq!(drive.progress(), SetPointProgress::Interrupted);
}

#[test]
fn early_velocity_is_sent_after_the_first_enabled_cycle() {
    let mut drive = ProfileDrive::new(ProfileMode::Velocity);
    drive.set_velocity(500);
    let sent = [0x0250, 0x0231, 0x0233, ENABLED, ENABLED]
        .map(|statusword| drive.update(input(statusword), Request::Enable).target_velocity);
    assert_eq!(sent, [0, 0, 0, 0, 500]);
}

#[test]
fn speeds_and_torques_only_fall_without_input() {
    let mut drive = enabled(ProfileMode::Velocity);
    drive.set_velocity(500);
    drive.set_torque(50);
    let output = drive.update(input(ENABLED), Request::Enable);
    assert_eq!((output.target_velocity, output.target_torque), (500, 0));
    drive.set_velocity(900);
    assert_eq!(drive.update(None, Request::Enable).target_velocity, 500);
    drive.set_velocity(100);
    assert_eq!(drive.update(None, Request::Enable).target_velocity, 100);
    assert_eq!(drive.update(input(ENABLED), Request::Halt).target_velocity, 0);
    drive.change_mode(ProfileMode::Torque);
    assert_eq!(drive.update(input(ENABLED), Request::Enable).target_torque, 0, "of the mode before");
    drive.set_torque(-70);
    let output = drive.update(input(ENABLED), Request::Enable);
    assert_eq!((output.target_velocity, output.target_torque), (0, -70));
    assert_eq!(drive.update(input(0x0250), Request::Enable).target_torque, 0);
}
