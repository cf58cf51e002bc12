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
mod tests;
