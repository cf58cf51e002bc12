//! The IPC of a robot: its description for clients, and the ports they may open.

use std::fs;

use control::ipc::{Commanded, Rules};
use ipc::channel::{Kind, Port};
use ipc::controller::CycleEnd;
use ipc::description::{
    ArmDescription, AxisDescription, BaseDescription, BrakeInputDescription, ControllerDescription,
    Description, InterlockDescription, WheelDescription,
};
use ipc::message::{control as requests, trajectory};
use ipc::server::Builder;
use motion::RadiansPerSecond;
use robot::{Base, BaseKind, ControllerKind, PortKind, RobotConfig};
use types::state::BrakeInput;
use types::time::nanoseconds;
use types::{FeedbackInput, Interlock, Signal};

use super::rules::{MovedBy, rules};
use super::signals;
use super::urdf::{self, tool};
use crate::{Error, SharedMemoryError};

/// An IPC that is not open yet, and its server.
pub(crate) struct Interface {
    /// To be opened.
    pub(crate) builder: Builder,
    /// Limits of commands for the robot.
    pub(crate) rules: Rules,
    /// Its ports.
    pub(crate) ports: Ports,
}

/// The real-time ends of a robot's ports: `control`, `trajectory`, the ports of the robot file, and
/// the port of the controller process, if there is one.
#[derive(Debug)]
pub(crate) struct Ports {
    ports: Vec<Port>,
    /// End of the controller process.
    pub(crate) external: Option<CycleEnd>,
}

impl Ports {
    /// The one of this name, once.
    pub(crate) fn take(&mut self, name: &str) -> Option<Port> {
        let place = self.ports.iter().position(|port| port.name() == name)?;
        Some(self.ports.swap_remove(place))
    }
}

/// Process data of a robot, as its bus in PreOp has it.
#[derive(Debug)]
pub(crate) struct InPreOp {
    pub(crate) signals: Vec<Signal>,
    /// For each axis, true if its drive has its torque in the process data.
    pub(crate) measures_torque: Vec<bool>,
}

/// The IPC of `robot`, called `name`.
pub(crate) fn interface(
    robot: &RobotConfig,
    name: &str,
    moved_by: MovedBy,
    InPreOp { signals, measures_torque }: &InPreOp,
) -> Result<Interface, Error> {
    let (sensors, described) = (signals::sensors(robot, signals), signals::described(robot, signals));
    let mut described = Description { signals: described, sensors, ..description(robot, moved_by)? };
    let rules = Rules { signals: Commanded::of(signals), ..rules(robot, moved_by) };
    for ((axis, &measures), &takes) in described.axes.iter_mut().zip(measures_torque).zip(&rules.axes) {
        (axis.measures_effort, axis.takes) = (measures, Some(takes));
    }
    let mut builder = Builder::new(name, &described);
    if robot.ipc.force {
        builder.forces(signals);
    }
    if let Some(group) = &robot.ipc.group {
        builder.group(group_number(group)?);
    }
    let mut create = |name: &str, kind| {
        builder.port(name, kind).map_err(|source| SharedMemoryError::Port { port: name.to_owned(), source })
    };
    let requests = create(requests::PORT, Kind::Message { size: requests::SIZE, depth: REQUESTS })?;
    let stops = create(requests::STOP_PORT, Kind::Message { size: requests::SIZE, depth: REQUESTS })?;
    let size = trajectory::size(robot.axes.len());
    let orders = create(trajectory::PORT, Kind::Message { size, depth: ORDERS })?;
    let port = |port: &robot::IpcPort| {
        let kind = match port.kind {
            PortKind::Message => Kind::Message { size: port.size, depth: port.depth },
            PortKind::Stream => Kind::Stream { size: port.size },
        };
        create(&port.name, kind)
    };
    let others = robot.ipc.ports.iter().map(port).collect::<Result<Vec<_>, _>>()?;
    let has_external = robot.controllers.iter().any(|it| it.kind == ControllerKind::External);
    let external = (has_external && moved_by == MovedBy::Controllers).then(|| builder.controller());
    let ports = Ports { ports: [requests, stops, orders].into_iter().chain(others).collect(), external };
    Ok(Interface { builder, rules, ports })
}

/// Description of `robot` for other processes. The ports are for the builder to add, the signals
/// are known in PreOp.
pub(crate) fn description(robot: &RobotConfig, moved_by: MovedBy) -> Result<Description, Error> {
    let urdf = robot.arm.as_ref().map(|arm| urdf::urdf(arm, &robot.axes));
    let controller = |controller: &robot::Controller| ControllerDescription {
        name: controller.name.clone(),
        kind: Some(controller.kind),
        axes: controller.axes.clone(),
    };
    Ok(Description {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        robot: robot.name.clone(),
        period_ns: nanoseconds(robot.cycle.period),
        longest_time_to_live_ns: nanoseconds(robot.ipc.longest_time_to_live),
        axes: (0..robot.axes.len()).map(|axis| axis_description(robot, axis)).collect(),
        controllers: match moved_by {
            MovedBy::Controllers => robot.controllers.iter().map(controller).collect(),
            MovedBy::Own => vec![own_controller(robot)],
        },
        base: robot.base.as_ref().map(|base| BaseDescription {
            kind: base.kind,
            velocity_limit: base.limits.velocity.0,
            yaw_limit: base.limits.yaw_velocity.0,
            odometry_frame: base.odometry_frame.clone(),
            base_frame: base.base_frame.clone(),
            wheels: wheels(base),
        }),
        frames: urdf::frames(robot),
        arm: tool(robot)?.map(|arm| ArmDescription {
            base: arm.base_link().to_owned(),
            tool: arm.tip_link().to_owned(),
        }),
        urdf: urdf.transpose()?,
        sub_devices: robot.bus.sub_devices.iter().map(|it| it.name.clone()).collect(),
        signals: Vec::new(),
        sensors: Vec::new(),
        interlocks: robot.interlocks.iter().map(|it| interlock(robot, it)).collect(),
        brake_inputs: robot.brake_inputs().map(|it| brake_input(robot, it)).collect(),
        ports: Vec::new(),
    })
}

fn brake_input(
    robot: &RobotConfig,
    (axis, name, input): (usize, BrakeInput, FeedbackInput),
) -> BrakeInputDescription {
    let FeedbackInput { sub_device, channel, inverted } = input;
    let sub_device = robot.bus.sub_devices.get(sub_device).map_or_else(String::new, |it| it.name.clone());
    BrakeInputDescription { axis, name: name.words().to_owned(), sub_device, channel, inverted }
}

fn interlock(robot: &RobotConfig, interlock: &Interlock) -> InterlockDescription {
    let Interlock { name, kind, sub_device, channel, inverted, axes } = interlock.clone();
    let sub_device = robot.bus.sub_devices.get(sub_device).map_or_else(String::new, |it| it.name.clone());
    InterlockDescription { name, kind, sub_device, channel, inverted, axes }
}

/// Driven wheels of a base, as a description has them; none of one that cannot be.
fn wheels(base: &Base) -> Vec<WheelDescription> {
    let row = |index: usize| {
        let twist = match base.kind {
            BaseKind::Differential => {
                let two = base.two_wheels().ok()?;
                two.twist(std::array::from_fn(|it| RadiansPerSecond(f64::from(it == index))))
            }
            _ => base
                .four_wheels()
                .ok()?
                .twist(std::array::from_fn(|it| RadiansPerSecond(f64::from(it == index)))),
        };
        Some([twist.x.0, twist.y.0, twist.yaw.0])
    };
    let rows = base.wheels.iter().enumerate();
    rows.map_while(|(index, &axis)| Some(WheelDescription { axis, twist: row(index)? })).collect()
}

/// It may move every axis.
fn own_controller(robot: &RobotConfig) -> ControllerDescription {
    let axes = (0..robot.axes.len()).collect();
    ControllerDescription { name: "own".to_owned(), kind: None, axes }
}

/// Clients use the name of the joint for an axis of an arm.
fn axis_description(robot: &RobotConfig, index: usize) -> AxisDescription {
    let axis = &robot.axes[index];
    let joint = robot.arm.as_ref().and_then(|arm| arm.joints[index].as_ref());
    AxisDescription {
        name: joint.unwrap_or(&axis.name).clone(),
        mode: axis.mode,
        position_limits: axis.limits.position.map(|(lowest, highest)| (lowest.0, highest.0)),
        velocity_limit: axis.limits.velocity.0,
        acceleration_limit: Some(axis.limits.acceleration.0),
        jerk_limit: Some(axis.limits.jerk.0),
        effort_limit: axis.limits.torque.0,
        jog_velocity: axis.jog.map(|it| it.velocity.0),
        measures_effort: true,
        takes: None,
        sub_device: Some(axis.sub_device),
        referencing: Some(super::names::referencing(axis)),
    }
}

/// Number of a group by its name in /etc/group, or written as a number.
fn group_number(group: &str) -> Result<u32, SharedMemoryError> {
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    number_in(&groups, group)
        .or_else(|| group.parse().ok())
        .ok_or_else(|| SharedMemoryError::Group { group: group.to_owned() })
}

/// Lines are `name:password:number:members` (group(5)).
fn number_in(groups: &str, wanted: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(wanted)).then(|| fields.nth(1)?.parse().ok())?
    })
}

/// Queue length of requests, and of trajectory orders: a cycle takes some of each.
const REQUESTS: usize = 16;
const ORDERS: usize = 64;

#[cfg(test)]
mod tests {
    use motion::MetresPerSecond;
    use motion::base::Twist;

    use super::*;

    #[test]
    fn groups_are_found_by_name() {
        let groups = "root:x:0:\nrobots:x:1007:anna,ben\nrobots2:x:1008:\nbroken\n";
        assert_eq!(number_in(groups, "robots"), Some(1007));
        assert_eq!(number_in(groups, "broken"), None);
        assert_eq!(number_in(groups, "robot"), None);
        assert_eq!(group_number("4711").unwrap(), 4711);
        assert!(group_number("no such group").is_err());
    }

    #[test]
    fn an_axis_goes_by_the_name_of_its_joint() {
        let text = include_str!("../../../../examples/six-axis.toml").to_owned();
        let text = text + "\n[arm]\nurdf = \"arm.urdf\"\njoints = { axis-2 = \"shoulder\" }\n";
        let mut robot = RobotConfig::parse(&text, "six-axis.toml").unwrap();
        let names =
            |robot: &RobotConfig| (0..3).map(|axis| axis_description(robot, axis).name).collect::<Vec<_>>();
        assert_eq!(names(&robot), ["axis-1", "shoulder", "axis-3"]);
        assert!(
            description(&robot, MovedBy::Controllers)
                .unwrap_err()
                .to_string()
                .starts_with("arm.urdf: No such file")
        );
        robot.arm = None;
        assert_eq!(description(&robot, MovedBy::Controllers).unwrap().axes.len(), 6);
    }

    #[test]
    fn the_described_wheels_make_the_twist_that_is_asked_of_them() {
        let text = include_str!("../../../../examples/omni.toml");
        let base = RobotConfig::parse(text, "omni.toml").unwrap().base.unwrap();
        let asked = [0.5, -0.25, 0.75];
        let [x, y, yaw] = asked;
        let twist = Twist { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) };
        let turning = base.four_wheels().unwrap().wheels(twist);
        let described = wheels(&base);
        for (part, asked) in asked.into_iter().enumerate() {
            let made: f64 = described.iter().zip(turning).map(|(it, wheel)| it.twist[part] * wheel.0).sum();
            assert!((made - asked).abs() < 1e-9, "{part}: {made}, asked {asked}");
        }
        let axes: Vec<usize> = described.iter().map(|it| it.axis).collect();
        assert_eq!(axes, base.wheels);
        let text = include_str!("../../../../examples/m4k.toml");
        let base = RobotConfig::parse(text, "m4k.toml").unwrap().base.unwrap();
        let [left, right] = wheels(&base).try_into().unwrap();
        let half = base.wheel_radius / 2.0;
        assert!((left.twist[0] - half).abs() < 1e-12 && (right.twist[0] - half).abs() < 1e-12);
        assert!(left.twist[2] < 0.0 && (left.twist[2] + right.twist[2]).abs() < 1e-12);
    }
}
