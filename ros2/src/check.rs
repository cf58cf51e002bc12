//! Checks of messages before they are passed to the cycle: numbers, names, sizes, in the terms of
//! the sender. Limits are the cycle's: it clamps what is beyond one, and reports that.

use ipc::command::{AxisTarget, ToolPose};
use ipc::description::{ArmDescription, AxisDescription, Description, SignalDescription};
use ipc::state::{Value, ValueKind};
use ipc::units::{Metres, NewtonMetres, Radians, RadiansPerSecond};

use crate::messages::geometry;
use crate::messages::sensor::{DynamicInterfaceGroupValues, InterfaceValue, JointState};
use types::ControllerKind;

/// Pose of an arm's tool from a message.
///
/// # Errors
/// Another frame than the arm's base link, or a pose that is none.
pub(crate) fn pose(message: &geometry::PoseStamped, arm: &ArmDescription) -> Result<ToolPose, String> {
    let frame = message.header.frame_id.as_str();
    if !frame.is_empty() && frame != arm.base {
        return Err(format!(
            "its frame is `{frame}`, expected the arm's base link `{}`, or none: nothing is transformed here",
            arm.base
        ));
    }
    let geometry::Pose { position: p, orientation: q } = message.pose;
    let numbers = [
        ("position.x", p.x),
        ("position.y", p.y),
        ("position.z", p.z),
        ("orientation.x", q.x),
        ("orientation.y", q.y),
        ("orientation.z", q.z),
        ("orientation.w", q.w),
    ];
    for (name, number) in numbers {
        finite(name, number)?;
    }
    let length = q.x.hypot(q.y).hypot(q.z).hypot(q.w);
    if (length - 1.0).abs() > ToolPose::UNIT {
        return Err(format!("its orientation has the length {length}, expected a unit quaternion"));
    }
    Ok(ToolPose { position: [p.x, p.y, p.z].map(Metres), orientation: [q.x, q.y, q.z, q.w] })
}

/// Quantity that joint commands give: one number for each joint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Position,
    Velocity,
    Effort,
}

impl Quantity {
    /// Quantity that a controller of this kind follows; `None` if it follows no joint commands.
    pub(crate) fn of_controller(kind: Option<ControllerKind>) -> Option<Self> {
        match kind? {
            ControllerKind::JointPosition => Some(Self::Position),
            ControllerKind::JointVelocity => Some(Self::Velocity),
            ControllerKind::JointEffort => Some(Self::Effort),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Position => "position",
            Self::Velocity => "velocity",
            Self::Effort => "effort",
        }
    }

    fn target(self, number: f64) -> AxisTarget {
        match self {
            Self::Position => AxisTarget::Position(Radians(number)),
            Self::Velocity => AxisTarget::Velocity(RadiansPerSecond(number)),
            Self::Effort => AxisTarget::Effort(NewtonMetres(number)),
        }
    }
}

/// Targets from a JointState; `quantity` is that of the active controller, and selects the field.
/// Joints that are not named get no command.
///
/// # Errors
/// A part of the message that the robot cannot do.
pub(crate) fn joint_state(
    message: &JointState,
    quantity: Quantity,
    robot: &Description,
) -> Result<Vec<Option<AxisTarget>>, String> {
    let numbers = match quantity {
        Quantity::Position => &message.position,
        Quantity::Velocity => &message.velocity,
        Quantity::Effort => &message.effort,
    };
    if message.name.is_empty() {
        return Err("it names no joints".into());
    }
    let axes = axes_by_name(&message.name, &robot.axes)?;
    if numbers.len() != message.name.len() {
        let first = axes.first().and_then(|&axis| robot.axes.get(axis));
        let mode =
            first.map_or_else(String::new, |it| format!(", and {} is in {}", it.name, it.mode.name()));
        return Err(format!(
            "its field `{}`, which the active controller follows, has {} numbers for {} joints{mode}",
            quantity.name(),
            numbers.len(),
            message.name.len()
        ));
    }
    targets(axes.into_iter().zip(numbers.iter().copied()), quantity, robot)
}

/// Targets from a plain list of numbers, in the order of a controller's axes.
///
/// # Errors
/// A part of the message that the robot cannot do.
pub(crate) fn joint_array(
    numbers: &[f64],
    axes: &[usize],
    quantity: Quantity,
    robot: &Description,
) -> Result<Vec<Option<AxisTarget>>, String> {
    if numbers.len() != axes.len() {
        return Err(format!("it has {} numbers, the controller {} joints", numbers.len(), axes.len()));
    }
    targets(axes.iter().copied().zip(numbers.iter().copied()), quantity, robot)
}

fn targets(
    wanted: impl Iterator<Item = (usize, f64)>,
    quantity: Quantity,
    robot: &Description,
) -> Result<Vec<Option<AxisTarget>>, String> {
    let mut targets = vec![None; robot.axes.len()];
    for (index, number) in wanted {
        let axis = robot.axes.get(index).ok_or("the controller has a joint that the robot has not")?;
        finite(&format!("{} of {}", quantity.name(), axis.name), number)?;
        targets[index] = Some(quantity.target(number));
    }
    Ok(targets)
}

/// Values of outputs commanded from outside, in their order, from a message; `None` for outputs
/// that the message does not name.
///
/// # Errors
/// A signal that does not exist, is not in its group, may not be commanded or is named twice; an
/// invalid value.
pub(crate) fn outputs(
    message: &DynamicInterfaceGroupValues,
    robot: &Description,
) -> Result<Vec<Option<Value>>, String> {
    let DynamicInterfaceGroupValues { interface_groups: groups, interface_values: values, .. } = message;
    if groups.len() != values.len() {
        return Err(format!("it has {} groups and values for {}", groups.len(), values.len()));
    }
    let commanded: Vec<usize> = robot.commanded().collect();
    let mut found = vec![None; commanded.len()];
    for (group, InterfaceValue { interface_names: names, values }) in groups.iter().zip(values) {
        if names.len() != values.len() {
            return Err(format!("group `{group}` has {} names and {} values", names.len(), values.len()));
        }
        for (name, &number) in names.iter().zip(values) {
            let place = output(group, name, robot)?;
            let index = commanded.iter().position(|&it| it == place);
            let index = index.ok_or_else(|| {
                let writer = match robot.signals[place].writer.as_deref() {
                    None => "is an input".to_owned(),
                    Some(writer) => format!("is written by {writer}"),
                };
                format!("signal `{name}` {writer}, expected an output with writer = \"outside\"")
            })?;
            let value = value(&robot.signals[place], number)?;
            if found[index].replace(value).is_some() {
                return Err(format!("it names the signal `{name}` twice"));
            }
        }
    }
    Ok(found)
}

fn output(group: &str, name: &str, robot: &Description) -> Result<usize, String> {
    let place = robot.signals.iter().position(|it| it.name == name && it.sub_device == group);
    place.ok_or_else(|| {
        let there = robot.commanded().map(|place| &robot.signals[place]);
        let there: Vec<String> = there.map(|it| format!("`{}` of `{}`", it.name, it.sub_device)).collect();
        format!(
            "there is no signal `{name}` in the group `{group}`; may be commanded: {}",
            there.join(", ")
        )
    })
}

/// The cycle takes numbers of any kind, and checks them.
fn value(signal: &SignalDescription, number: f64) -> Result<Value, String> {
    let name = &signal.name;
    finite(&format!("signal `{name}`"), number)?;
    if signal.kind == ValueKind::Bool {
        return match number {
            0.0 => Ok(Value::Bool(false)),
            1.0 => Ok(Value::Bool(true)),
            _ => Err(format!("signal `{name}` is a bit, expected 0 or 1, found {number}")),
        };
    }
    match signal.range {
        Some((low, high)) if !(low..=high).contains(&number) => {
            Err(format!("signal `{name}` is to be {number} {}, expected {low} to {high}", signal.unit))
        }
        _ => Ok(Value::Real(number)),
    }
}

/// Indices of the named axes.
///
/// # Errors
/// A name that belongs to no axis, or occurs twice.
pub(crate) fn axes_by_name(names: &[String], axes: &[AxisDescription]) -> Result<Vec<usize>, String> {
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        let index = axes.iter().position(|axis| axis.name == *name).ok_or_else(|| {
            let known: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            format!("the robot has no joint `{name}`; it has {}", known.join(", "))
        })?;
        if found.contains(&index) {
            return Err(format!("joint `{name}` comes twice"));
        }
        found.push(index);
    }
    Ok(found)
}

/// Checks that a number is finite.
///
/// # Errors
/// The number is not finite.
pub(crate) fn finite(name: &str, number: f64) -> Result<(), String> {
    if number.is_finite() { Ok(()) } else { Err(format!("{name} is {number}; expected a finite number")) }
}

#[cfg(test)]
mod tests {
    use types::CyclicMode;

    use super::*;

    fn robot() -> Description {
        let axis = |name: &str, position_limits| AxisDescription {
            position_limits,
            ..AxisDescription::new(name, CyclicMode::Position, 2.0, 5.0)
        };
        Description { axes: vec![axis("a", Some((-1.0, 1.0))), axis("b", None)], ..Description::default() }
    }

    #[test]
    fn joints_are_found_by_name() {
        let robot = robot();
        let command = |names: &[&str], position: &[f64]| {
            let name = names.iter().map(|&name| name.to_owned()).collect();
            let message = JointState { name, position: position.to_vec(), ..JointState::default() };
            joint_state(&message, Quantity::Position, &robot)
        };
        assert_eq!(command(&["b"], &[7.0]), Ok(vec![None, Some(AxisTarget::Position(Radians(7.0)))]));
        assert_eq!(
            command(&["a"], &[1.5]),
            Ok(vec![Some(AxisTarget::Position(Radians(1.5))), None]),
            "clamped later"
        );
        assert!(command(&["a"], &[f64::NAN]).unwrap_err().contains("position of a is NaN"));
        assert!(command(&["c"], &[0.0]).unwrap_err().contains("no joint `c`"));
        assert!(command(&["a", "a"], &[0.0, 0.0]).unwrap_err().contains("twice"));
        assert!(command(&["a", "b"], &[0.0]).unwrap_err().contains("1 numbers for 2 joints"));
        assert!(command(&[], &[]).is_err());
        assert!(command(&["b"], &[f64::INFINITY]).is_err(), "an axis without limits, too");
    }

    #[test]
    fn a_bare_list_is_in_the_order_of_the_controller() {
        let robot = robot();
        let targets = joint_array(&[0.5, 1.0], &[1, 0], Quantity::Velocity, &robot).unwrap();
        assert_eq!(
            targets,
            [
                Some(AxisTarget::Velocity(RadiansPerSecond(1.0))),
                Some(AxisTarget::Velocity(RadiansPerSecond(0.5)))
            ]
        );
        assert!(joint_array(&[0.5], &[1, 0], Quantity::Velocity, &robot).is_err());
        for sign in [1.0, -1.0] {
            let infinite = [f64::INFINITY * sign];
            assert!(joint_array(&infinite, &[1], Quantity::Velocity, &robot).is_err());
            assert!(joint_array(&infinite, &[1], Quantity::Effort, &robot).is_err());
            assert!(joint_array(&[5.1 * sign], &[1], Quantity::Effort, &robot).is_ok());
        }
        assert!(joint_array(&[0.0], &[9], Quantity::Effort, &robot).is_err());
    }
}
