//! The robot as the one hardware component of ros2_control that it is, and its interfaces.

use ipc::description::{ControllerDescription, Description};
use ipc::state::NO_CONTROLLER;
use types::ControllerKind;

use crate::messages::controller_manager::{
    HardwareComponentState, HardwareInterface, LifecycleState, NamedLifecycleState,
};

/// Reported type and plug-in of the component.
const TYPE: &str = "system";
const PLUGIN: &str = "onbeat/EtherCAT";

/// Command interfaces, claimed for the active controller; then the interfaces of outputs that are
/// set from outside.
pub(super) fn commands(robot: &Description, active: u16) -> Vec<HardwareInterface> {
    let mut interfaces: Vec<HardwareInterface> = Vec::new();
    for (index, controller) in robot.controllers.iter().enumerate() {
        let is_claimed = active != NO_CONTROLLER && index == usize::from(active);
        for name in command_interfaces(controller, robot) {
            match interfaces.iter_mut().find(|it| it.name == name) {
                Some(interface) => interface.is_claimed |= is_claimed,
                None => interfaces.push(HardwareInterface { name, is_available: true, is_claimed }),
            }
        }
    }
    interfaces.extend(robot.commanded().map(|place| signal(robot, place)));
    interfaces
}

/// State interfaces of the axes, and the named signals.
pub(super) fn states(robot: &Description) -> Vec<HardwareInterface> {
    let mut interfaces = axes(robot);
    let named = (0..robot.signals.len()).filter(|&place| robot.signals[place].named);
    interfaces.extend(named.map(|place| signal(robot, place)));
    interfaces
}

/// State interfaces of the axes.
pub(super) fn axes(robot: &Description) -> Vec<HardwareInterface> {
    let mut interfaces = Vec::new();
    for axis in &robot.axes {
        let measured = ["position", "velocity"].into_iter().chain(axis.measures_effort.then_some("effort"));
        interfaces.extend(measured.map(|it| available(format!("{}/{it}", axis.name))));
    }
    interfaces
}

pub(super) fn signal(robot: &Description, place: usize) -> HardwareInterface {
    let signal = &robot.signals[place];
    available(format!("{}/{}", signal.sub_device, signal.name))
}

fn available(name: String) -> HardwareInterface {
    HardwareInterface { name, is_available: true, is_claimed: false }
}

/// State of the component: active while the drives are enabled.
pub(super) fn state(enabled: bool) -> State {
    if enabled { State::Active } else { State::Inactive }
}

/// The component.
pub(super) fn component(robot: &Description, active: u16, enabled: bool) -> HardwareComponentState {
    HardwareComponentState {
        name: robot.robot.clone(),
        kind: TYPE.to_owned(),
        is_async: false,
        rw_rate: update_rate(robot),
        class_type: PLUGIN.to_owned(),
        plugin_name: PLUGIN.to_owned(),
        state: state(enabled).message(),
        command_interfaces: commands(robot, active),
        state_interfaces: states(robot),
    }
}

/// The component in the topic `activity`.
pub(super) fn activity(robot: &Description, enabled: bool) -> NamedLifecycleState {
    NamedLifecycleState { name: robot.robot.clone(), state: state(enabled).message() }
}

/// State that a request asks for, by its number or else by its label.
///
/// # Errors
/// A state that the component does not have, or another component.
pub(super) fn target(name: &str, asked: &LifecycleState, robot: &Description) -> Result<State, String> {
    if name != robot.robot {
        return Err(format!("there is no hardware component `{name}`; there is `{}`", robot.robot));
    }
    match (asked.id, asked.label.as_str()) {
        (2, _) | (0, "inactive") => Ok(State::Inactive),
        (3, _) | (0, "active") => Ok(State::Active),
        (id, label) => Err(format!(
            "hardware component `{name}` cannot become {label:?} ({id}); expected inactive (2) or active (3)"
        )),
    }
}

/// State of a controller, as lifecycle_msgs/State has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Unconfigured,
    Inactive,
    Active,
}

impl State {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Unconfigured => "unconfigured",
            Self::Inactive => "inactive",
            Self::Active => "active",
        }
    }

    pub(super) fn message(self) -> LifecycleState {
        let id = match self {
            Self::Unconfigured => 1,
            Self::Inactive => 2,
            Self::Active => 3,
        };
        LifecycleState { id, label: self.label().to_owned() }
    }
}

/// Names of the command interfaces that a controller claims.
pub(super) fn command_interfaces(controller: &ControllerDescription, robot: &Description) -> Vec<String> {
    let interface = match controller.kind {
        Some(ControllerKind::JointEffort) => "effort",
        Some(ControllerKind::JointVelocity | ControllerKind::DiffDrive | ControllerKind::OmniDrive) => {
            "velocity"
        }
        _ => "position",
    };
    let axes = controller.axes.iter().filter_map(|&axis| robot.axes.get(axis));
    axes.map(|axis| format!("{}/{interface}", axis.name)).collect()
}

/// Cycles a second.
pub(super) fn update_rate(robot: &Description) -> u16 {
    (1_000_000_000 / robot.period_ns.max(1)).min(u16::MAX.into()) as u16
}

#[cfg(test)]
mod tests {
    use ipc::description::{AxisDescription, ControllerDescription, SignalDescription};
    use types::CyclicMode;

    use super::*;

    fn robot() -> Description {
        let axis = |name: &str, measures_effort| AxisDescription {
            measures_effort,
            ..AxisDescription::new(name, CyclicMode::Position, 2.0, 5.0)
        };
        let controller = |kind, axes: &[usize]| ControllerDescription {
            name: "any".into(),
            kind: Some(kind),
            axes: axes.to_vec(),
        };
        let signal = |name: &str, named, writer: Option<&str>| SignalDescription {
            name: name.into(),
            sub_device: "lamps".into(),
            named,
            writer: writer.map(Into::into),
            ..SignalDescription::default()
        };
        Description {
            robot: "cell".into(),
            period_ns: 2_000_000,
            axes: vec![axis("a", true), axis("b", false)],
            controllers: vec![
                controller(ControllerKind::JointTrajectory, &[0, 1]),
                controller(ControllerKind::JointPosition, &[1]),
                controller(ControllerKind::JointVelocity, &[0]),
            ],
            signals: vec![signal("green", true, Some("outside")), signal("0x6000:1", false, None)],
            ..Description::default()
        }
    }

    fn names(interfaces: &[HardwareInterface]) -> Vec<&str> {
        interfaces.iter().map(|it| it.name.as_str()).collect()
    }

    // feature(ros2): hardware components and interfaces as ros2_control lists them; a component is active while the drives are enabled
    #[test]
    fn interfaces_are_axes_and_named_signals() {
        let robot = robot();
        let component = component(&robot, 1, true);
        assert_eq!(
            (component.name.as_str(), component.rw_rate, component.state.label.as_str()),
            ("cell", 500, "active")
        );
        let commands = &component.command_interfaces;
        assert_eq!(names(commands), ["a/position", "b/position", "a/velocity", "lamps/green"]);
        let claimed: Vec<bool> = commands.iter().map(|it| it.is_claimed).collect();
        assert_eq!(claimed, [false, true, false, false], "of the active controller");
        let states = ["a/position", "a/velocity", "a/effort", "b/position", "b/velocity", "lamps/green"];
        assert_eq!(names(&component.state_interfaces), states);
        assert!(super::commands(&robot, NO_CONTROLLER).iter().all(|it| !it.is_claimed));
    }

    #[test]
    fn a_component_becomes_active_or_inactive_and_nothing_else() {
        let robot = robot();
        let ask = |name: &str, id: u8, label: &str| {
            target(name, &LifecycleState { id, label: label.into() }, &robot)
        };
        assert_eq!(ask("cell", 3, "active"), Ok(State::Active));
        assert_eq!(ask("cell", 0, "inactive"), Ok(State::Inactive));
        assert!(
            ask("cell", 1, "unconfigured").unwrap_err().contains("expected inactive (2) or active (3)")
        );
        assert!(ask("cell", 0, "").is_err());
        assert!(ask("arm", 3, "active").unwrap_err().contains("there is `cell`"));
    }
}
