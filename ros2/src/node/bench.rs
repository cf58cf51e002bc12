//! Test bench: a robot behind a real shared-memory interface, and a part of the node that uses it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use clap::Parser;
use ipc::channel::{Kind, Port};
use ipc::command::{Command, Read};
use ipc::description::{
    ArmDescription, AxisDescription, BaseDescription, ControllerDescription, Description, SignalDescription,
};
use ipc::message::trajectory;
use ipc::server::{Builder, Endpoints, Server};
use ipc::state::State;
use rustdds::bytes::Bytes;
use rustdds::rpc::SampleIdentity;
use rustdds::{RepresentationIdentifier, SequenceNumber};
use serde::Serialize;

use super::Moment;
use crate::dds::name::NodeName;
use crate::dds::sample::{Sample, encode};
use crate::lifecycle::Lifecycle;
use crate::messages::geometry::{Twist, Vector3};
use crate::options::Options;
use crate::robot::Robot;
use crate::ros_args::RosArguments;
use crate::settings::Settings;
use crate::voice::Voice;
use types::{BaseKind, ControllerKind, CyclicMode, ValueKind};

/// A robot behind a real shared-memory interface: two wheels that drive a base, or follow positions
/// or velocities one by one.
pub(super) struct Bench {
    folder: PathBuf,
    pub(super) ends: Endpoints,
    /// `None` after the end of the cycle.
    pub(super) server: Option<Server>,
    /// Real-time end of the port `trajectory`, with room for eight messages.
    pub(super) trajectory: Port,
    pub(super) robot: Robot,
    pub(super) settings: Settings,
    pub(super) voice: Voice,
    pub(super) lifecycle: Lifecycle,
    pub(super) node: NodeName,
}

pub(super) const DRIVE: u16 = 0;
pub(super) const POSITION: u16 = 1;
pub(super) const VELOCITY: u16 = 2;
pub(super) const TRAJECTORY: u16 = 3;
pub(super) const TOOL: u16 = 4;

fn description() -> Description {
    let axis = |name: &str| AxisDescription {
        position_limits: Some((-1.0, 1.0)),
        ..AxisDescription::new(name, CyclicMode::Velocity, 2.0, 5.0)
    };
    let controller = |name: &str, kind, axes: &[usize]| ControllerDescription {
        name: name.into(),
        kind: Some(kind),
        axes: axes.to_vec(),
    };
    let signal = |name: &str, kind, writer: &str, range| SignalDescription {
        name: name.into(),
        sub_device: "terminals".into(),
        kind,
        range,
        writer: Some(writer.into()),
        ..SignalDescription::default()
    };
    Description {
        axes: ["left", "right"].map(axis).to_vec(),
        controllers: vec![
            controller("base", ControllerKind::DiffDrive, &[0, 1]),
            controller("place", ControllerKind::JointPosition, &[0, 1]),
            controller("turn", ControllerKind::JointVelocity, &[1]),
            controller("follow", ControllerKind::JointTrajectory, &[0, 1]),
            controller("tool", ControllerKind::Cartesian, &[0, 1]),
        ],
        signals: vec![
            signal("lamp", ValueKind::Bool, "outside", None),
            signal("valve", ValueKind::Real, "outside", Some((0.0, 10.0))),
            signal("belt", ValueKind::Bool, "controller", None),
        ],
        arm: Some(ArmDescription { base: "base".into(), tool: "hand".into() }),
        base: Some(BaseDescription {
            kind: BaseKind::Differential,
            velocity_limit: 1.0,
            yaw_limit: 2.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
            wheels: Vec::new(),
        }),
        ..Description::default()
    }
}

impl Bench {
    /// A bench with this controller active.
    pub(super) fn new(active: u16) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("onbeat-ros2-node-{}-{number}", std::process::id()));
        let mut ipc = Builder::new("robot", &description());
        ipc.folder(&folder);
        let kind = Kind::Message { size: trajectory::size(2), depth: 8 };
        let mut port = ipc.port(trajectory::PORT, kind).unwrap();
        port.bind();
        let (mut ends, server) = ipc.open().unwrap();
        let mut state = State::default();
        state.control.active = active;
        ends.state.publish(&state);
        let options = ["onbeat-ros2", "--ipc", server.path().to_str().unwrap()];
        let mut robot = Robot::attach(&Options::parse_from(options)).unwrap();
        assert!(robot.refresh());
        Self {
            folder,
            ends,
            server: Some(server),
            trajectory: port,
            robot,
            settings: Settings::default(),
            voice: Voice::new(true, &RosArguments::default(), "/onbeat".into()),
            lifecycle: active_life(),
            node: NodeName::new("/", "onbeat").unwrap(),
        }
    }

    pub(super) fn act(
        &mut self,
        act: impl FnOnce(&mut Moment<'_>) -> Result<(), String>,
    ) -> Result<Command, String> {
        let Self { robot, settings, voice, lifecycle, node, .. } = self;
        act(&mut Moment { robot: Some(robot), settings, voice, lifecycle, node })?;
        let mut command = self.ends.command.blank();
        // One read passes at most one change of the lease holder; here there were two before.
        let heard = (0..3).any(|_| self.ends.command.newest(&mut command) == Read::New);
        assert!(heard, "the cycle receives nothing");
        Ok(command)
    }

    /// Ends the cycle.
    pub(super) fn end(&mut self) {
        self.server = None;
    }

    /// True if no command reached the cycle.
    pub(super) fn is_calm(&mut self) -> bool {
        let mut command = self.ends.command.blank();
        matches!(self.ends.command.newest(&mut command), Read::Nothing | Read::Same)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn active_life() -> Lifecycle {
    let mut lifecycle = Lifecycle::new(true);
    lifecycle.rise();
    lifecycle
}

/// Sample of these bytes, by its number.
pub(super) fn sample(bytes: Vec<u8>, number: i64) -> Sample {
    let sequence_number = SequenceNumber::from(number);
    Sample {
        bytes: Bytes::from(bytes),
        encoding: RepresentationIdentifier::CDR_LE,
        identity: SampleIdentity { sequence_number, ..SampleIdentity::default() },
        related: None,
    }
}

/// Sample of a message.
pub(super) fn message<T: Serialize>(message: &T) -> Sample {
    let mut bytes = Vec::new();
    assert!(encode(message, &mut bytes));
    sample(bytes, 1)
}

/// Sample of /cmd_vel.
pub(super) fn velocity(x: f64) -> Sample {
    message(&Twist { linear: Vector3 { x, y: 0.0, z: 0.0 }, ..Twist::default() })
}
