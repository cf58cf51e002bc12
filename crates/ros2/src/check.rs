//! Checks of messages before they are passed to the cycle: numbers, names, sizes, limits. The real-time
//! side checks all of it again; here an error is reported in the terms of the sender.

use ipc::command::{AxisTarget, Pose, Twist};
use ipc::description::{ArmDescription, AxisDescription, BaseDescription, Description, SignalDescription};
use ipc::state::Value;
use motion::kinematics::ToolPose;

use crate::messages::geometry;
use crate::messages::sensor::{DynamicInterfaceGroupValues, InterfaceValue, JointState};

/// Velocity of a base from a twist message.
///
/// # Errors
/// A part of the twist that the base cannot do.
pub(crate) fn velocity(twist: &geometry::Twist, base: &BaseDescription) -> Result<Twist, String> {
    let geometry::Twist { linear, angular } = *twist;
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
    if base.kind == "differential" && linear.y != 0.0 {
        return Err(format!("linear.y is {} m/s: a differential drive cannot go sideways", linear.y));
    }
    within("speed", linear.x.hypot(linear.y), base.velocity_limit, "m/s")?;
    within("angular.z", angular.z, base.yaw_limit, "rad/s")?;
    Ok(Twist { x: linear.x, y: linear.y, yaw: angular.z })
}

/// Pose of an arm's tool from a message.
///
/// # Errors
/// Another frame than the arm's base link, or a pose that is none.
pub(crate) fn pose(message: &geometry::PoseStamped, arm: &ArmDescription) -> Result<Pose, String> {
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
    Ok(Pose { position: [p.x, p.y, p.z], orientation: [q.x, q.y, q.z, q.w] })
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
    pub(crate) fn of_controller(kind: &str) -> Option<Self> {
        match kind {
            "joint_position" => Some(Self::Position),
            "joint_velocity" => Some(Self::Velocity),
            "joint_effort" => Some(Self::Effort),
            _ => None,
        }
    }

    fn target(self, number: f64) -> AxisTarget {
        match self {
            Self::Position => AxisTarget::Position(number),
            Self::Velocity => AxisTarget::Velocity(number),
            Self::Effort => AxisTarget::Effort(number),
        }
    }
}

/// Targets from a JointState; `quantity` is that of the active controller, and selects the field. Joints
/// that are not named get no command.
///
/// # Errors
/// A part of the message that the robot cannot do.
pub(crate) fn joint_state(
    message: &JointState,
    quantity: Quantity,
    robot: &Description,
) -> Result<Vec<Option<AxisTarget>>, String> {
    let (field, numbers) = match quantity {
        Quantity::Position => ("position", &message.position),
        Quantity::Velocity => ("velocity", &message.velocity),
        Quantity::Effort => ("effort", &message.effort),
    };
    if message.name.is_empty() {
        return Err("it names no joints".into());
    }
    if numbers.len() != message.name.len() {
        return Err(format!(
            "its field `{field}`, which the active controller follows, has {} numbers for {} joints",
            numbers.len(),
            message.name.len()
        ));
    }
    let axes = axes_by_name(&message.name, &robot.axes)?;
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
        match quantity {
            Quantity::Position => position(axis, number)?,
            Quantity::Velocity => speed(axis, number)?,
            Quantity::Effort => {
                let name = format!("effort of {}", axis.name);
                within(&name, number, axis.effort_limit, "N m")?;
            }
        }
        targets[index] = Some(quantity.target(number));
    }
    Ok(targets)
}

/// Values of outputs that are commanded from outside, in their order, from a message; `None` of those it does not name.
///
/// # Errors
/// A signal that is not there, is not in its group, may not be commanded or is named twice; a value it cannot have.
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
    if signal.kind == "bool" {
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

/// Checks that a position is within the limits of an axis.
///
/// # Errors
/// The limit that is violated.
pub(crate) fn position(axis: &AxisDescription, number: f64) -> Result<(), String> {
    let name = format!("position of {}", axis.name);
    finite(&name, number)?;
    match axis.position_limits {
        Some((low, high)) if !(low..=high).contains(&number) => {
            Err(format!("{name} is {number} rad; it may be {low} to {high} rad"))
        }
        _ => Ok(()),
    }
}

/// Checks that a speed is within the limit of an axis.
///
/// # Errors
/// The limit that is violated.
pub(crate) fn speed(axis: &AxisDescription, number: f64) -> Result<(), String> {
    within(&format!("velocity of {}", axis.name), number, axis.velocity_limit, "rad/s")
}

fn within(name: &str, number: f64, limit: f64, unit: &str) -> Result<(), String> {
    finite(name, number)?;
    if number.abs() <= limit {
        return Ok(());
    }
    Err(format!("{name} is {number} {unit}; the robot allows {limit} {unit} either way"))
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
    use super::*;
    use crate::messages::geometry::Vector3;

    fn base(kind: &str) -> BaseDescription {
        BaseDescription {
            kind: kind.into(),
            velocity_limit: 1.0,
            yaw_limit: 2.0,
            odometry_frame: "odom".into(),
            base_frame: "base_link".into(),
        }
    }

    fn twist(x: f64, y: f64, yaw: f64) -> geometry::Twist {
        let linear = Vector3 { x, y, z: 0.0 };
        geometry::Twist { linear, angular: Vector3 { z: yaw, ..Default::default() } }
    }

    fn robot() -> Description {
        let axis = |name: &str, position_limits| AxisDescription {
            name: name.into(),
            mode: "csp".into(),
            position_limits,
            velocity_limit: 2.0,
            effort_limit: 5.0,
        };
        Description { axes: vec![axis("a", Some((-1.0, 1.0))), axis("b", None)], ..Description::default() }
    }

    #[test]
    fn a_velocity_within_the_limits_passes_and_any_other_is_told_why() {
        let base_of = base("differential");
        assert_eq!(velocity(&twist(1.0, 0.0, -2.0), &base_of), Ok(Twist { x: 1.0, y: 0.0, yaw: -2.0 }));
        let refused = |x, y, yaw, word: &str| {
            let error = velocity(&twist(x, y, yaw), &base_of).unwrap_err();
            assert!(error.contains(word), "{error}");
        };
        refused(f64::NAN, 0.0, 0.0, "linear.x is NaN");
        refused(0.0, 0.0, f64::NEG_INFINITY, "angular.z is -inf");
        refused(1.01, 0.0, 0.0, "speed is 1.01 m/s");
        refused(0.0, 0.0, 2.5, "angular.z is 2.5 rad/s");
        refused(-1.01, 0.0, 0.0, "speed is 1.01 m/s");
        refused(0.0, 0.0, -2.5, "angular.z is -2.5 rad/s");
        refused(0.0, 0.1, 0.0, "sideways");
        let omni = base("mecanum");
        assert!(velocity(&twist(0.6, -0.6, 0.0), &omni).is_ok());
        assert!(velocity(&twist(0.8, 0.8, 0.0), &omni).is_err(), "both together are faster than 1 m/s");
        // A number without effect must be finite, too.
        let zero = Vector3::default();
        let nan = f64::NAN;
        for (linear, angular, word) in [
            (Vector3 { z: nan, ..zero }, zero, "linear.z is NaN"),
            (zero, Vector3 { x: nan, ..zero }, "angular.x is NaN"),
            (zero, Vector3 { y: nan, ..zero }, "angular.y is NaN"),
        ] {
            let error = velocity(&geometry::Twist { linear, angular }, &omni).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn joints_are_found_by_name_and_held_to_their_limits() {
        let robot = robot();
        let command = |names: &[&str], position: &[f64]| {
            let name = names.iter().map(|&name| name.to_owned()).collect();
            let message = JointState { name, position: position.to_vec(), ..JointState::default() };
            joint_state(&message, Quantity::Position, &robot)
        };
        assert_eq!(command(&["b"], &[7.0]), Ok(vec![None, Some(AxisTarget::Position(7.0))]));
        assert!(command(&["a"], &[1.5]).unwrap_err().contains("-1 to 1 rad"));
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
        assert_eq!(targets, [Some(AxisTarget::Velocity(1.0)), Some(AxisTarget::Velocity(0.5))]);
        assert!(joint_array(&[0.5], &[1, 0], Quantity::Velocity, &robot).is_err());
        for sign in [1.0, -1.0] {
            assert!(joint_array(&[2.1 * sign], &[1], Quantity::Velocity, &robot).is_err());
            assert!(joint_array(&[5.1 * sign], &[1], Quantity::Effort, &robot).is_err());
            assert!(joint_array(&[5.0 * sign], &[1], Quantity::Effort, &robot).is_ok());
        }
        assert!(joint_array(&[0.0], &[9], Quantity::Effort, &robot).is_err());
    }
}
