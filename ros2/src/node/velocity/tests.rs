use super::*;
use crate::dds::sample::encode;
use crate::messages::basic::Header;
use crate::messages::geometry::Vector3;
use crate::node::bench::{Bench, DRIVE, POSITION, message, sample, velocity};

#[test]
fn both_kinds_of_velocity_are_distinguished() {
    let linear = Vector3 { x: 0.25, y: 0.0, z: 0.0 };
    let twist = Twist { linear, ..Twist::default() };
    let mut plain = Vec::new();
    assert!(encode(&twist, &mut plain));
    assert_eq!(plain.len(), TWIST);
    assert_eq!(decode_velocity(&sample(plain.clone(), 1)), Ok(twist));
    let mut stamped = Vec::new();
    assert!(encode(&TwistStamped { twist, ..TwistStamped::default() }, &mut stamped));
    assert!(stamped.len() > TWIST, "even with the shortest frame");
    assert_eq!(decode_velocity(&sample(stamped.clone(), 1)), Ok(twist));
    for length in 0..plain.len() {
        assert!(decode_velocity(&sample(plain[..length].to_vec(), 1)).is_err());
    }
    for length in TWIST + 1..stamped.len() {
        assert!(decode_velocity(&sample(stamped[..length].to_vec(), 1)).is_err());
    }
}

#[test]
fn a_sample_that_two_readers_see_counts_once() {
    let mut newest = Newest::default();
    assert!(newest.is_new(&sample(Vec::new(), 1)));
    assert!(!newest.is_new(&sample(Vec::new(), 1)));
    assert!(newest.is_new(&sample(Vec::new(), 2)));
    assert!(!newest.is_new(&sample(Vec::new(), 1)), "an older one comes too late");
}

#[test]
fn a_velocity_is_passed_on_with_the_time_it_holds() {
    let mut bench = Bench::new(DRIVE);
    bench.settings.cmd_vel_timeout = 0.25;
    bench.settings.joint_commands_timeout = 0.75;
    let command = bench.act(|moment| drive(&velocity(0.5), moment)).unwrap();
    assert_eq!(command.twist.unwrap().x.0, 0.5);
    assert_eq!(command.axes, [None, None], "the base alone is asked");
    assert_eq!(command.time_to_live_ns, 250_000_000);
    let beyond = bench.act(|moment| drive(&velocity(-1.5), moment)).unwrap();
    assert_eq!(beyond.twist.unwrap().x.0, -1.5, "the cycle slows it down");
    let error = bench.act(|moment| drive(&velocity(f64::NAN), moment)).unwrap_err();
    assert!(error.contains("NaN"), "{error}");
    assert!(bench.is_calm(), "what was refused was not passed on");
}

#[test]
fn a_velocity_is_for_a_controller_that_drives() {
    let mut bench = Bench::new(POSITION);
    let error = bench.act(|moment| drive(&velocity(0.5), moment)).unwrap_err();
    assert_eq!(error, "controller `place` is active, and does not drive the base");
    assert!(bench.is_calm());
    let mut moment = Moment {
        robot: None,
        settings: &mut bench.settings,
        voice: &bench.voice,
        lifecycle: &mut bench.lifecycle,
        node: &bench.node,
    };
    assert_eq!(drive(&velocity(0.5), &mut moment), Err("no cycle is running".into()));
}

// feature(ros2): `CONTROLLER/cmd_vel` and `CONTROLLER/odom` as diff_drive_controller has them: each part clamped by itself, no longer than the time-out after its stamp
#[test]
fn a_controllers_velocity_is_clamped_and_valid_from_its_stamp() {
    let mut bench = Bench::new(DRIVE);
    bench.settings.cmd_vel_timeout = 5.0;
    let clock = WallClock::now();
    let aged = |seconds: f64, twist: Twist| {
        let ns = clock.stamp(monotonic_ns()).to_ns() - (seconds * 1e9) as i64;
        let header = Header { stamp: Time::from_ns(ns), ..Header::default() };
        message(&TwistStamped { header, twist })
    };
    let drive_with =
        |bench: &mut Bench, sample: Sample| bench.act(|moment| drive_as(DRIVE.into(), &sample, moment));
    let command = drive_with(&mut bench, aged(2.0, twist(-3.0, 0.0, 0.5))).unwrap();
    assert_eq!(command.twist, Some(command::Twist::new(-1.0, 0.0, 0.5)), "the turn is not slowed down");
    let left = command.time_to_live_ns as f64 * 1e-9;
    assert!((1.0..=3.0).contains(&left), "{left} s are left of 5 s after 2 s");
    let ahead = drive_with(&mut bench, aged(-100.0, twist(0.5, 0.0, -9.0))).unwrap();
    assert_eq!(ahead.twist, Some(command::Twist::new(0.5, 0.0, -2.0)));
    assert_eq!(ahead.time_to_live_ns, 5_000_000_000, "no longer than the time-out");
    let plain = message(&TwistStamped { twist: twist(0.25, 0.0, 0.0), ..TwistStamped::default() });
    let plain = drive_with(&mut bench, plain).unwrap();
    assert_eq!((plain.twist.unwrap().x.0, plain.time_to_live_ns), (0.25, 5_000_000_000));
    let old = drive_with(&mut bench, aged(6.0, twist(0.5, 0.0, 0.0))).unwrap_err();
    assert!(old.contains("s old, expected less than 5 s"), "{old}");
    let sideways = drive_with(&mut bench, aged(0.0, twist(0.0, 0.5, 0.0))).unwrap_err();
    assert!(sideways.contains("sideways"), "{sideways}");
    assert!(bench.is_calm(), "what was refused was not passed on");
    let mut other = Bench::new(POSITION);
    let error = drive_with(&mut other, aged(0.0, twist(0.5, 0.0, 0.0))).unwrap_err();
    assert_eq!(error, "controller `base` is not active");
}

#[test]
fn without_an_active_controller_no_velocity_is_passed_on() {
    let mut bench = Bench::new(ipc::state::NO_CONTROLLER);
    let error = bench.act(|moment| drive(&velocity(0.5), moment)).unwrap_err();
    assert_eq!(error, "no controller is active");
    assert!(bench.is_calm());
}

fn base(kind: BaseKind) -> BaseDescription {
    BaseDescription {
        kind,
        velocity_limit: 1.0,
        yaw_limit: 2.0,
        odometry_frame: "odom".into(),
        base_frame: "base_link".into(),
        wheels: Vec::new(),
    }
}

#[test]
fn topics_of_a_base_match_ros2_controllers() {
    let topics = |kind| BaseTopics::of(&Description { base: Some(base(kind)), ..Description::default() });
    let mecanum = BaseTopics { command: "reference", odometry: "odometry", tf: Some("tf_odometry") };
    let other = BaseTopics { command: "cmd_vel", odometry: "odom", tf: None };
    let kinds = [BaseKind::Mecanum, BaseKind::Differential, BaseKind::Omni].map(topics);
    assert_eq!(kinds, [mecanum, other, other]);
}

fn twist(x: f64, y: f64, yaw: f64) -> Twist {
    let linear = Vector3 { x, y, z: 0.0 };
    Twist { linear, angular: Vector3 { z: yaw, ..Default::default() } }
}

#[test]
fn finite_velocities_pass_and_others_are_refused_with_a_reason() {
    let base_of = base(BaseKind::Differential);
    assert_eq!(possible(&twist(1.0, 0.0, -2.0), &base_of), Ok(command::Twist::new(1.0, 0.0, -2.0)));
    let refused = |x, y, yaw, word: &str| {
        let error = possible(&twist(x, y, yaw), &base_of).unwrap_err();
        assert!(error.contains(word), "{error}");
    };
    refused(f64::NAN, 0.0, 0.0, "linear.x is NaN");
    refused(0.0, 0.0, f64::NEG_INFINITY, "angular.z is -inf");
    assert!(possible(&twist(99.0, 0.0, -99.0), &base_of).is_ok(), "the cycle slows it down");
    refused(0.0, 0.1, 0.0, "sideways");
    let omni = base(BaseKind::Mecanum);
    assert!(possible(&twist(0.6, -0.6, 0.0), &omni).is_ok());
    // A number without effect must be finite, too.
    let zero = Vector3::default();
    let nan = f64::NAN;
    for (linear, angular, word) in [
        (Vector3 { z: nan, ..zero }, zero, "linear.z is NaN"),
        (zero, Vector3 { x: nan, ..zero }, "angular.x is NaN"),
        (zero, Vector3 { y: nan, ..zero }, "angular.y is NaN"),
    ] {
        let error = possible(&Twist { linear, angular }, &omni).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}
