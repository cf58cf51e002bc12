//! Joint commands, poses of an arm's tool, and values of outputs.

use super::{Endpoints, Moment};
use crate::check::{self, Quantity};
use crate::dds::sample::Sample;
use crate::dds::{DdsError, Quality, Reader};
use crate::messages::basic::Float64MultiArray;
use crate::messages::geometry::PoseStamped;
use crate::messages::sensor::{DynamicInterfaceGroupValues, JointState};
use crate::robot::Robot;
use ipc::description::Description;
use ipc::state::NO_CONTROLLER;
use types::ControllerKind;

/// Readers of commands.
pub(crate) struct Commands {
    /// `None` for a robot without a controller that follows joint commands.
    joints: Option<Reader>,
    /// `None` for a robot without a controller of an arm's tool.
    pose: Option<Reader>,
    /// `None` for a robot without outputs that are commanded from outside.
    outputs: Option<Reader>,
    /// Index and topic reader of each controller that follows joint commands.
    arrays: Vec<(usize, Reader)>,
}

impl Commands {
    pub(crate) fn new(endpoints: &mut Endpoints<'_>, robot: &Description) -> Result<Self, DdsError> {
        let pose = |endpoints: &mut Endpoints<'_>| {
            endpoints.subscribe("~/target_pose", "geometry_msgs/PoseStamped", Quality::BestEffort)
        };
        let outputs = |endpoints: &mut Endpoints<'_>| {
            let kind = "control_msgs/DynamicInterfaceGroupValues";
            endpoints.subscribe("~/gpio_commands", kind, Quality::BestEffort)
        };
        let mut arrays = Vec::new();
        for (index, controller) in robot.controllers.iter().enumerate() {
            if Quantity::of_controller(controller.kind).is_some() {
                let topic = format!("{}/commands", controller.name);
                let kind = "std_msgs/Float64MultiArray";
                arrays.push((index, endpoints.subscribe(&topic, kind, Quality::BestEffort)?));
            }
        }
        let joints = |endpoints: &mut Endpoints<'_>| {
            endpoints.subscribe("joint_commands", "sensor_msgs/JointState", Quality::BestEffort)
        };
        Ok(Self {
            joints: (!arrays.is_empty()).then(|| joints(endpoints)).transpose()?,
            pose: robot.arm.as_ref().map(|_| pose(endpoints)).transpose()?,
            outputs: robot.commanded().next().map(|_| outputs(endpoints)).transpose()?,
            arrays,
        })
    }

    pub(crate) fn poll(&mut self, moment: &mut Moment<'_>) {
        if let Some(sample) = self.joints.as_ref().and_then(last) {
            report("joint_commands", moment, |moment| move_joints(&sample, moment));
        }
        if let Some(sample) = self.pose.as_ref().and_then(last) {
            report("target_pose", moment, |moment| move_tool(&sample, moment));
        }
        // Messages may be about different outputs.
        while let Some(sample) = self.outputs.as_ref().and_then(Reader::take) {
            report("gpio_commands", moment, |moment| set_outputs(&sample, moment));
        }
        for (controller, reader) in &self.arrays {
            if let Some(sample) = last(reader) {
                report("commands", moment, |moment| move_array(&sample, *controller, moment));
            }
        }
    }

    pub(crate) fn readers(&mut self) -> Vec<&mut Reader> {
        let mut readers: Vec<&mut Reader> = self.joints.iter_mut().collect();
        readers.extend(&mut self.pose);
        readers.extend(&mut self.outputs);
        readers.extend(self.arrays.iter_mut().map(|(_, reader)| reader));
        readers
    }
}

fn last(reader: &Reader) -> Option<Sample> {
    std::iter::from_fn(|| reader.take()).last()
}

/// Runs `act`, and logs its error.
pub(super) fn report(
    topic: &'static str,
    moment: &mut Moment<'_>,
    act: impl FnOnce(&mut Moment<'_>) -> Result<(), String>,
) {
    if let Err(why) = act(moment) {
        moment.voice.warn(topic, format_args!("{topic}: refused: {why}"));
    }
}

fn move_joints(sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let message: JointState = sample.decode()?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let active = robot.active().ok_or("no controller is active")?;
    let quantity = Quantity::of_controller(active.kind).ok_or_else(|| {
        format!(
            "controller `{}` ({}) is active, and follows no joint commands",
            active.name,
            active.kind_name()
        )
    })?;
    let axes = check::joint_state(&message, quantity, robot.description())?;
    robot.move_axes(axes, moment.settings.joint_commands_timeout)
}

fn move_tool(sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let message: PoseStamped = sample.decode()?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let arm = robot.description().arm.as_ref();
    let arm = arm.ok_or("the robot has no controller of an arm's tool")?;
    let pose = check::pose(&message, arm)?;
    some_controller(robot)?;
    if let Some(active) = robot.active().filter(|active| active.kind != Some(ControllerKind::Cartesian)) {
        return Err(format!(
            "controller `{}` ({}) is active, and moves no tool",
            active.name,
            active.kind_name()
        ));
    }
    robot.move_tool(pose, moment.settings.joint_commands_timeout)
}

fn set_outputs(sample: &Sample, moment: &mut Moment<'_>) -> Result<(), String> {
    let message: DynamicInterfaceGroupValues = sample.decode()?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let outputs = check::outputs(&message, robot.description())?;
    robot.set_outputs(outputs, moment.settings.gpio_commands_timeout)
}

fn move_array(sample: &Sample, controller: usize, moment: &mut Moment<'_>) -> Result<(), String> {
    let message: Float64MultiArray = sample.decode()?;
    moment.lifecycle.may_move()?;
    let robot = attached(&mut moment.robot)?;
    let asked =
        robot.description().controllers.get(controller).ok_or("the robot has no such controller")?;
    let quantity = Quantity::of_controller(asked.kind).ok_or("the controller follows no joint commands")?;
    if usize::from(robot.state().control.active) != controller {
        return Err(format!("controller `{}` is not active", asked.name));
    }
    let axes = check::joint_array(&message.data, &asked.axes, quantity, robot.description())?;
    robot.move_axes(axes, moment.settings.joint_commands_timeout)
}

/// Checks that not all controllers are deactivated.
///
/// # Errors
/// They are.
pub(super) fn some_controller(robot: &Robot) -> Result<(), String> {
    match robot.state().control.active {
        NO_CONTROLLER => Err("no controller is active".to_owned()),
        _ => Ok(()),
    }
}

/// Robot, if a cycle runs.
///
/// # Errors
/// No cycle is running.
pub(crate) fn attached<'a>(robot: &'a mut Option<&mut Robot>) -> Result<&'a mut Robot, String> {
    robot.as_deref_mut().ok_or_else(|| "no cycle is running".to_owned())
}

#[cfg(test)]
mod tests {
    use ipc::command::{AxisTarget, Command};
    use ipc::state::Value;
    use ipc::units::{Radians, RadiansPerSecond};

    use super::*;
    use crate::messages::basic::Header;
    use crate::messages::geometry::{Pose, Quaternion, Vector3};
    use crate::messages::sensor::InterfaceValue;
    use crate::node::bench::{Bench, DRIVE, POSITION, TOOL, VELOCITY, message, sample, velocity};
    use crate::node::velocity::drive;

    fn joints(names: &[&str], position: &[f64], velocity: &[f64]) -> Sample {
        let name = names.iter().map(|&name| name.to_owned()).collect();
        let (position, velocity) = (position.to_vec(), velocity.to_vec());
        message(&JointState { name, position, velocity, ..JointState::default() })
    }

    fn numbers(data: &[f64]) -> Sample {
        message(&Float64MultiArray { data: data.to_vec(), ..Float64MultiArray::default() })
    }

    #[test]
    fn joint_commands_ask_for_what_the_active_controller_follows() {
        for (active, target) in [
            (POSITION, AxisTarget::Position(Radians(0.25))),
            (VELOCITY, AxisTarget::Velocity(RadiansPerSecond(-1.5))),
        ] {
            let mut bench = Bench::new(active);
            bench.settings.joint_commands_timeout = 0.75;
            let asked = joints(&["right"], &[0.25], &[-1.5]);
            let command = bench.act(|moment| move_joints(&asked, moment)).unwrap();
            assert_eq!((&command.axes[..], command.twist), (&[None, Some(target)][..], None));
            assert_eq!(command.time_to_live_ns, 750_000_000);
        }
        let mut bench = Bench::new(VELOCITY);
        let error = bench.act(|moment| move_joints(&joints(&["right"], &[0.25], &[]), moment)).unwrap_err();
        let expected = "its field `velocity`, which the active controller follows, has 0 numbers for 1 joints, and right is in csv";
        assert_eq!(error, expected);
        assert!(bench.is_calm());
        let mut bench = Bench::new(DRIVE);
        let error =
            bench.act(|moment| move_joints(&joints(&["right"], &[0.25], &[0.0]), moment)).unwrap_err();
        assert_eq!(error, "controller `base` (diff_drive) is active, and follows no joint commands");
        assert!(bench.is_calm());
    }

    #[test]
    fn a_controllers_own_topic_is_for_it_alone() {
        let mut bench = Bench::new(VELOCITY);
        bench.settings.joint_commands_timeout = 0.75;
        let command =
            bench.act(|moment| move_array(&numbers(&[1.5]), usize::from(VELOCITY), moment)).unwrap();
        assert_eq!(command.axes, [None, Some(AxisTarget::Velocity(RadiansPerSecond(1.5)))]);
        assert_eq!(command.time_to_live_ns, 750_000_000);
        let other = bench.act(|moment| move_array(&numbers(&[0.1, 0.1]), usize::from(POSITION), moment));
        assert_eq!(other.unwrap_err(), "controller `place` is not active");
        assert!(bench.is_calm());
    }

    fn pose(frame: &str, x: f64, w: f64) -> Sample {
        let position = Vector3 { x, y: -0.25, z: 0.5 };
        let orientation = Quaternion { x: 0.0, y: 0.6, z: 0.0, w };
        let header = Header { frame_id: frame.into(), ..Header::default() };
        message(&PoseStamped { header, pose: Pose { position, orientation } })
    }

    // feature(axes): ROS 2: `~/target_pose` moves the tool of an arm; a foreign frame is refused
    #[test]
    fn a_pose_of_the_tool_is_passed_on_in_the_frame_of_the_arm() {
        let mut bench = Bench::new(TOOL);
        bench.settings.joint_commands_timeout = 0.75;
        for frame in ["base", ""] {
            let command = bench.act(|moment| move_tool(&pose(frame, 0.125, 0.8), moment)).unwrap();
            let asked = command.pose.unwrap();
            assert_eq!(
                (asked.position.map(|it| it.0), asked.orientation),
                ([0.125, -0.25, 0.5], [0.0, 0.6, 0.0, 0.8])
            );
            assert_eq!((command.twist, command.time_to_live_ns), (None, 750_000_000));
        }
        for (asked, why) in [
            (pose("map", 0.125, 0.8), "its frame is `map`, expected the arm's base link `base`, or none"),
            (pose("base", f64::NAN, 0.8), "position.x"),
            (pose("base", 0.125, 0.9), "expected a unit quaternion"),
            (pose("base", 0.125, f64::INFINITY), "orientation.w"),
        ] {
            let error = bench.act(|moment| move_tool(&asked, moment)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let whole = pose("base", 0.125, 0.8).bytes;
        for length in 0..whole.len() {
            let cut = sample(whole[..length].to_vec(), 1);
            assert!(bench.act(|moment| move_tool(&cut, moment)).is_err());
        }
        assert!(bench.is_calm(), "what was refused was not passed on");
        let mut bench = Bench::new(POSITION);
        let error = bench.act(|moment| move_tool(&pose("", 0.125, 0.8), moment)).unwrap_err();
        assert_eq!(error, "controller `place` (joint_position) is active, and moves no tool");
    }

    fn outputs(group: &str, names: &[&str], values: &[f64]) -> Sample {
        let interface_names = names.iter().map(|&name| name.to_owned()).collect();
        let value = InterfaceValue { interface_names, values: values.to_vec() };
        message(&DynamicInterfaceGroupValues {
            interface_groups: vec![group.into()],
            interface_values: vec![value],
            ..DynamicInterfaceGroupValues::default()
        })
    }

    // feature(ros2): `~/gpio_commands` sets outputs that the robot file gives to the outside; others are refused by name
    #[test]
    fn outside_outputs_are_passed_on_and_others_refused_by_name() {
        let mut bench = Bench::new(DRIVE);
        bench.settings.gpio_commands_timeout = 0.75;
        let set = |sample: &Sample, bench: &mut Bench| bench.act(|moment| set_outputs(sample, moment));
        let command = set(&outputs("terminals", &["valve", "lamp"], &[2.5, 1.0]), &mut bench).unwrap();
        assert_eq!(command.signals, [Some(Value::Bool(true)), Some(Value::Real(2.5))]);
        assert_eq!((command.time_to_live_ns, command.twist), (750_000_000, None));
        let command = set(&outputs("terminals", &["valve"], &[0.0]), &mut bench).unwrap();
        assert_eq!(command.signals, [None, Some(Value::Real(0.0))], "the lamp stays as it is");
        for (names, values, why) in [
            (
                &["belt"][..],
                &[1.0][..],
                "signal `belt` is written by controller, expected an output with writer = \"outside\"",
            ),
            (
                &["lump"],
                &[1.0],
                "there is no signal `lump` in the group `terminals`; may be commanded: `lamp` of `terminals`, `valve`",
            ),
            (&["lamp"], &[0.5], "signal `lamp` is a bit, expected 0 or 1, found 0.5"),
            (&["valve"], &[f64::NAN], "signal `valve`"),
            (&["valve"], &[10.5], "signal `valve` is to be 10.5 , expected 0 to 10"),
            (&["lamp", "lamp"], &[1.0, 0.0], "it names the signal `lamp` twice"),
            (&["lamp", "valve"], &[1.0], "group `terminals` has 2 names and 1 values"),
        ] {
            let error = set(&outputs("terminals", names, values), &mut bench).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let error = set(&outputs("elsewhere", &["lamp"], &[1.0]), &mut bench).unwrap_err();
        assert!(error.contains("no signal `lamp` in the group `elsewhere`"), "{error}");
        let whole = outputs("terminals", &["lamp"], &[1.0]).bytes;
        for length in 0..whole.len() {
            assert!(set(&sample(whole[..length].to_vec(), 1), &mut bench).is_err());
        }
        assert!(bench.is_calm(), "what was refused was not passed on");
    }

    // feature(ros2): `~/gpio_commands` sets outputs that the robot file gives to the outside; others are refused by name
    #[test]
    fn outputs_neither_stop_nor_prolong_a_motion() {
        let mut bench = Bench::new(DRIVE);
        bench.settings.cmd_vel_timeout = 0.5;
        bench.settings.gpio_commands_timeout = 5.0;
        let first = bench.act(|moment| drive(&velocity(0.5), moment)).unwrap();
        let second =
            bench.act(|moment| set_outputs(&outputs("terminals", &["lamp"], &[1.0]), moment)).unwrap();
        assert_eq!((second.twist, second.signals[0]), (first.twist, Some(Value::Bool(true))));
        let end = |command: &Command| command.stamp_ns + command.time_to_live_ns;
        assert!(second.time_to_live_ns <= 500_000_000);
        // As far apart as two readings of the clock.
        assert!(end(&second).abs_diff(end(&first)) < 400_000_000, "{first:?} {second:?}");
        std::thread::sleep(std::time::Duration::from_millis(550));
        let third =
            bench.act(|moment| set_outputs(&outputs("terminals", &["lamp"], &[0.0]), moment)).unwrap();
        assert_eq!((third.twist, third.time_to_live_ns), (None, 5_000_000_000));
    }

    #[test]
    fn the_lease_is_returned_after_the_last_command_expired() {
        use ipc::client::{Client, LeaseError};
        let mut bench = Bench::new(DRIVE);
        bench.settings.cmd_vel_timeout = 0.02;
        bench.act(|moment| drive(&velocity(0.5), moment)).unwrap();
        let other = Client::open(bench.server.as_ref().unwrap().path()).unwrap();
        bench.robot.release_if_idle(&bench.voice);
        assert!(matches!(other.command(), Err(LeaseError::Taken { .. })), "kept while commands come");
        let begin = std::time::Instant::now();
        while other.command().is_err() {
            bench.robot.release_if_idle(&bench.voice);
            assert!(begin.elapsed() < std::time::Duration::from_secs(40), "it is never given back");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        // A writer that returns takes over again.
        assert!(bench.act(|moment| drive(&velocity(0.25), moment)).is_ok());
    }

    // feature(ros2): a managed node: commands and goals are passed on while it is active
    #[test]
    fn nothing_moves_from_here_while_the_node_is_not_active() {
        let mut bench = Bench::new(DRIVE);
        bench.lifecycle.begin(0, "deactivate").unwrap();
        let outputs = message(&DynamicInterfaceGroupValues {
            interface_groups: vec!["terminals".into()],
            interface_values: vec![InterfaceValue {
                interface_names: vec!["lamp".into()],
                values: vec![1.0],
            }],
            ..DynamicInterfaceGroupValues::default()
        });
        let why = "the node is deactivating, expected active: `ros2 lifecycle set` its transitions";
        assert_eq!(bench.act(|moment| drive(&velocity(0.5), moment)), Err(why.into()));
        let asked = joints(&["right"], &[0.25], &[0.0]);
        assert_eq!(bench.act(|moment| move_joints(&asked, moment)), Err(why.into()));
        assert_eq!(bench.act(|moment| move_array(&numbers(&[1.5]), 2, moment)), Err(why.into()));
        assert_eq!(
            bench.act(|moment| move_tool(&message(&PoseStamped::default()), moment)),
            Err(why.into())
        );
        assert_eq!(bench.act(|moment| set_outputs(&outputs, moment)), Err(why.into()));
        assert!(bench.is_calm());
        bench.lifecycle.end(false);
        assert!(bench.act(|moment| drive(&velocity(0.5), moment)).is_ok());
    }
}
