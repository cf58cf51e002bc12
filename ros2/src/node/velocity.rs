//! /cmd_vel, as Twist and as TwistStamped, and the topics of diff_drive_controller and its like
//! below the names of their controllers: from samples to a command of the base.
//!
//! A topic of DDS may have writers of several types. A reader receives samples of its type only.
//! RustDDS keeps one cache for each topic *name*, so two readers of one name see each other's
//! samples: samples are distinguished by their length - a Twist has 48 bytes, a TwistStamped never
//! less than 64 - and counted once by writer and sequence number.

use std::collections::HashMap;

use ipc::command;
use ipc::description::{BaseDescription, Description};
use rustdds::{GUID, SequenceNumber};

use super::commands::{attached, report, some_controller};
use super::{Endpoints, Moment};
use crate::check::finite;
use crate::clock::{WallClock, monotonic_ns};
use crate::dds::sample::Sample;
use crate::dds::{DdsError, Quality, Reader};
use crate::messages::basic::Time;
use crate::messages::geometry::{Twist, TwistStamped};
use types::{BaseKind, ControllerKind};

/// Readers of /cmd_vel.
pub(crate) struct Velocity {
    /// Of a Twist and of a TwistStamped; none for a robot without a controller of a base.
    readers: Vec<Reader>,
    newest: Newest,
    own: Vec<Own>,
}

/// Velocity for one controller, as ros2_controllers take it.
struct Own {
    controller: usize,
    reader: Reader,
}

impl Velocity {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let follows = robot.controllers.iter().filter_map(|it| it.kind).any(ControllerKind::drives_a_base);
        let kinds: &[&str] =
            if follows { &["geometry_msgs/Twist", "geometry_msgs/TwistStamped"] } else { &[] };
        let readers = kinds.iter().map(|kind| endpoints.subscribe("cmd_vel", kind, Quality::BestEffort));
        let readers = readers.collect::<Result<_, _>>()?;
        let drives = robot.controllers.iter().enumerate();
        let drives = drives.filter(|(_, it)| it.kind.is_some_and(ControllerKind::drives_a_base));
        let mut own = Vec::new();
        for (controller, about) in drives {
            let topic = format!("{}/{}", about.name, BaseTopics::of(robot).command);
            let kind = "geometry_msgs/TwistStamped";
            let reader = endpoints.subscribe(&topic, kind, Quality::BestEffort)?;
            own.push(Own { controller, reader });
        }
        Ok(Self { readers, newest: Newest::default(), own })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        // Of all samples since the last turn the newest counts.
        let mut velocity = None;
        for reader in &self.readers {
            while let Some(sample) = reader.take() {
                if self.newest.remember(&sample) {
                    velocity = Some(sample);
                }
            }
        }
        if let Some(sample) = velocity {
            report("cmd_vel", moment, |moment| drive(&sample, moment));
        }
        for own in &self.own {
            if let Some(sample) = std::iter::from_fn(|| own.reader.take()).last() {
                report("cmd_vel", moment, |moment| drive_as(own.controller, &sample, moment));
            }
        }
    }

    pub(crate) fn readers(&mut self) -> Vec<&mut Reader> {
        self.readers.iter_mut().chain(self.own.iter_mut().map(|own| &mut own.reader)).collect()
    }
}

/// Passes a velocity on to the cycle.
pub(super) fn drive(sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let twist = decode_velocity(sample)?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let base = robot.description().base.as_ref();
    let base = base.ok_or("the robot has no base that drives about (no [base] in its file)")?;
    let velocity = possible(&twist, base)?;
    some_controller(robot)?;
    if let Some(active) =
        robot.active().filter(|active| !active.kind.is_some_and(ControllerKind::drives_a_base))
    {
        return Err(format!("controller `{}` is active, and does not drive the base", active.name));
    }
    robot.drive(velocity, moment.settings.cmd_vel_timeout)
}

/// Passes a velocity on to the cycle as diff_drive_controller does: for this controller alone, each
/// part of it clamped by itself, and no longer than the time-out after its stamp.
///
/// # Errors
/// The controller is not active, the stamp is too old, or a part is not possible.
fn drive_as(controller: usize, sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let stamped: TwistStamped = sample.decode()?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let description = robot.description();
    let about = description.controllers.get(controller).ok_or("the robot has no such controller")?;
    if usize::from(robot.state().control.active) != controller {
        return Err(format!("controller `{}` is not active", about.name));
    }
    let base = description.base.as_ref().ok_or("the robot has no base that drives about")?;
    let asked = possible(&stamped.twist, base)?;
    let seconds = seconds_left(stamped.header.stamp, moment.settings.cmd_vel_timeout, WallClock::now())?;
    let within = clamped(asked, base);
    if within != asked {
        let (speed, yaw) = (base.velocity_limit, base.yaw_limit);
        let why = format_args!("cmd_vel: clamped to the limits of the base, {speed} m/s and {yaw} rad/s");
        moment.voice.warn("cmd_vel clamped", why);
    }
    robot.drive(within, seconds)
}

/// Time for which a velocity of this stamp is valid; without a stamp it counts as of now.
///
/// # Errors
/// The velocity has expired.
fn seconds_left(stamp: Time, timeout: f64, clock: WallClock) -> Result<f64, String> {
    if stamp == Time::default() {
        return Ok(timeout);
    }
    let age_ns = clock.stamp(monotonic_ns()).to_ns().saturating_sub(stamp.to_ns());
    let left = timeout - age_ns as f64 * 1e-9;
    if left > 0.0 {
        Ok(left.min(timeout))
    } else {
        Err(format!("its time stamp is {:.3} s old, expected less than {timeout} s", timeout - left))
    }
}

/// Velocity with each part within the limits of the base.
fn clamped(asked: command::Twist, base: &BaseDescription) -> command::Twist {
    let (speed, yaw) = (base.velocity_limit, base.yaw_limit);
    command::Twist::new(
        asked.x.0.clamp(-speed, speed),
        asked.y.0.clamp(-speed, speed),
        asked.yaw.0.clamp(-yaw, yaw),
    )
}

/// Topics of a controller that drives a base, below its name, as the controller of ros2_controllers
/// for such a base has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BaseTopics {
    /// Velocity that it follows.
    pub(super) command: &'static str,
    /// Odometry.
    pub(super) odometry: &'static str,
    /// Odometry's frame to the base's, where that is not on /tf alone.
    pub(super) tf: Option<&'static str>,
}

impl BaseTopics {
    /// Topics of mecanum_drive_controller, else of diff_drive_controller and
    /// omni_wheel_drive_controller.
    pub(super) fn of(robot: &Description) -> Self {
        match robot.base.as_ref().map(|base| base.kind) {
            Some(BaseKind::Mecanum) => {
                Self { command: "reference", odometry: "odometry", tf: Some("tf_odometry") }
            }
            _ => Self { command: "cmd_vel", odometry: "odom", tf: None },
        }
    }
}

/// Decodes a Twist or a TwistStamped.
fn decode_velocity(sample: &Sample) -> Result<Twist, String> {
    if sample.bytes.len() <= TWIST {
        return sample.decode();
    }
    sample.decode::<TwistStamped>().map(|stamped| stamped.twist)
}

/// Bytes of a Twist.
const TWIST: usize = 48;

/// Velocity of a base from a twist message.
///
/// # Errors
/// A part of the twist that the base cannot do.
fn possible(twist: &Twist, base: &BaseDescription) -> Result<command::Twist, String> {
    let Twist { linear, angular } = *twist;
    let numbers = [
        ("linear.x", linear.x),
        ("linear.y", linear.y),
        ("linear.z", linear.z),
        ("angular.x", angular.x),
        ("angular.y", angular.y),
        ("angular.z", angular.z),
    ];
    for (name, number) in numbers {
        finite(name, number)?;
    }
    if base.kind == BaseKind::Differential && linear.y != 0.0 {
        return Err(format!("linear.y is {} m/s: a differential drive cannot go sideways", linear.y));
    }
    Ok(command::Twist::new(linear.x, linear.y, angular.z))
}

/// Last sequence number of each writer.
#[derive(Default)]
struct Newest {
    last: HashMap<GUID, SequenceNumber>,
}

/// Writers that are remembered: commands come from a few.
const MOST_WRITERS: usize = 64;

impl Newest {
    /// Remembers the sample; false if it is not newer than the last one of its writer.
    fn remember(&mut self, sample: &Sample) -> bool {
        let (writer, number) = (sample.identity.writer_guid, sample.identity.sequence_number);
        if self.last.get(&writer).is_some_and(|&last| number <= last) {
            return false;
        }
        if self.last.len() >= MOST_WRITERS {
            self.last.clear();
        }
        self.last.insert(writer, number);
        true
    }
}

#[cfg(test)]
mod tests {
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
        assert!(newest.remember(&sample(Vec::new(), 1)));
        assert!(!newest.remember(&sample(Vec::new(), 1)));
        assert!(newest.remember(&sample(Vec::new(), 2)));
        assert!(!newest.remember(&sample(Vec::new(), 1)), "an older one comes too late");
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
        let topics =
            |kind| BaseTopics::of(&Description { base: Some(base(kind)), ..Description::default() });
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
}
