//! Checks of base and arm.
//!
//! Checks of frames: unique names, existing parents, and no loops.

use std::collections::HashMap;

use motion::base::Twist;
use types::AxisMode;

use super::{Checked, check_readable, unknown_name};
use crate::error::Problem;
use crate::field::{Number, Place};
use crate::model::{Arm, Axis, Base, BaseKind, Frame};

pub(super) fn base(base: &mut Base, axes: &[Axis], entry: Place<'_>) -> Checked<()> {
    match (base.wheel_diameter, entry.has("wheel_radius")) {
        (Some(diameter), false) => base.wheel_radius = diameter / 2.0,
        (None, true) => {}
        (given, _) => {
            let found = if given.is_some() { "a diameter and a radius" } else { "wheels without a size" };
            let expected = "wheel_diameter or wheel_radius, in m";
            return Err(Problem::new(entry, found, expected, "give one of the two"));
        }
    }
    base.wheels = wheels(base, axes, entry)?;
    let limits = entry.key("limits");
    check_speed(base, axes, limits)?;
    check_change(base, axes, limits)
}

/// Indices of the axes of its wheels.
fn wheels(base: &Base, axes: &[Axis], entry: Place<'_>) -> Checked<Vec<usize>> {
    let kind = base.kind;
    let [two, four] = base.wheel_names();
    let (own, others) = if kind == BaseKind::Differential { (two, four) } else { (four, two) };
    let of_others = others.iter().map(|(key, _)| *key);
    let wheelbase = ["wheelbase"].into_iter().filter(|_| kind == BaseKind::Differential);
    let roller_angle = ["roller_angle"].into_iter().filter(|_| kind != BaseKind::Mecanum);
    if let Some(key) = of_others.chain(wheelbase).chain(roller_angle).find(|key| entry.has(key)) {
        let found = format!("{key} for a base of kind {}", kind.name());
        let expected = "only what such a base has";
        return Err(Problem::new(entry.key(key), found, expected, "remove it, or change kind"));
    }
    let missing = |key: &str, expected: String| {
        let found = format!("a base of kind {} without {key}", kind.name());
        Err(Problem::new(entry, found, expected, "add it"))
    };
    let mut wheels = Vec::new();
    for (key, name) in own {
        let place = entry.key(key);
        let Some(name) = name else {
            return missing(key, format!("{key} = the name of its wheel's axis"));
        };
        let index = axis_called(name, axes, "as a wheel", place)?;
        let mode = axes[index].mode;
        if mode != AxisMode::CyclicVelocity {
            let found = format!("wheel \"{name}\" in mode {}", mode.name());
            return Err(Problem::new(place, found, "mode csv", "change the axis's mode"));
        }
        if wheels.contains(&index) {
            let found = format!("axis \"{name}\" for a second wheel");
            return Err(Problem::new(place, found, "an axis for each wheel", "name another axis"));
        }
        wheels.push(index);
    }
    if kind != BaseKind::Differential && !entry.has("wheelbase") {
        return missing("wheelbase", "wheelbase = ..., in m".to_owned());
    }
    Ok(wheels)
}

/// Checks that the wheels turn fast enough for the base's highest speed straight ahead.
fn check_speed(base: &Base, axes: &[Axis], limits: Place<'_>) -> Checked<()> {
    let velocity = base.limits.velocity.0;
    let needed = velocity / base.wheel_radius;
    let slow = base.wheels.iter().map(|&wheel| &axes[wheel]).find(|axis| axis.limits.velocity.0 < needed);
    slow.map_or(Ok(()), |axis| {
        let found =
            format!("velocity = {}, at which wheels turn at {:.3} rad/s", Number(velocity), Number(needed));
        let (name, limit) = (&axis.name, Number(axis.limits.velocity.0));
        let expected = format!("at most the velocity limit of \"{name}\", {limit} rad/s");
        let remedy = "lower it, or raise the axis's limit";
        Err(Problem::new(limits.key("velocity"), found, expected, remedy))
    })
}

/// Checks that no wheel exceeds a written limit of acceleration or jerk of its axis while the base
/// uses its own ahead, aside and about at once: supervision would clamp it.
fn check_change(base: &Base, axes: &[Axis], limits: Place<'_>) -> Checked<()> {
    let of = &base.limits;
    let accelerations = highest(base, of.acceleration.0, of.yaw_acceleration.0);
    let jerks = highest(base, of.jerk.0, of.yaw_jerk.0);
    for ((&wheel, acceleration), jerk) in base.wheels.iter().zip(accelerations).zip(jerks) {
        let (name, axis) = (&axes[wheel].name, &axes[wheel].limits);
        let written = axis.written;
        let place = limits.first_of(&["acceleration"]);
        if written.acceleration && acceleration > axis.acceleration.0 * ROUNDED_UP {
            let found = format!("acceleration and yaw_acceleration that turn wheel \"{name}\" with up to");
            let limit = axis.acceleration.0;
            return Err(beyond(place, &found, acceleration, "acceleration", limit, "rad/s\u{b2}"));
        }
        let place = limits.first_of(&["jerk", "yaw_jerk", "acceleration"]);
        if written.jerk && jerk > axis.jerk.0 * ROUNDED_UP {
            let found = format!("jerk and yaw_jerk that turn wheel \"{name}\" with up to");
            return Err(beyond(place, &found, jerk, "jerk", axis.jerk.0, "rad/s\u{b3}"));
        }
    }
    Ok(())
}

/// Highest rate of each wheel with `ahead` along x and y, and `about` in yaw. It is linear in each;
/// x and y change independently of each other.
fn highest(base: &Base, ahead: f64, about: f64) -> Vec<f64> {
    let aside = if base.kind == BaseKind::Differential { 0.0 } else { ahead };
    let parts = [Twist::new(ahead, 0.0, 0.0), Twist::new(0.0, aside, 0.0), Twist::new(0.0, 0.0, about)];
    let of_each = parts.map(|twist| match base.kind {
        BaseKind::Differential => {
            base.two_wheels().map_or_else(|_| Vec::new(), |it| it.wheels(twist).to_vec())
        }
        _ => base.four_wheels().map_or_else(|_| Vec::new(), |it| it.wheels(twist).to_vec()),
    });
    let wheels = 0..of_each[0].len();
    wheels.map(|wheel| of_each.iter().map(|it| it[wheel].0.abs()).sum()).collect()
}

fn beyond(place: Place<'_>, what: &str, found: f64, limit: &str, highest: f64, unit: &str) -> Problem {
    let found = format!("{what} {:.3} {unit}", Number(found));
    let expected = format!("at most the {limit} limit of its axis, {} {unit}", Number(highest));
    Problem::new(place, found, expected, "lower them, or raise the axis's limit")
}

/// Limits of a file are often just enough, and sums of doubles round.
const ROUNDED_UP: f64 = 1.0 + 1e-9;

/// True of a mode that follows positions cycle by cycle.
pub(super) const fn is_streamed_position(mode: AxisMode) -> bool {
    matches!(mode, AxisMode::CyclicPosition | AxisMode::InterpolatedPosition)
}

/// Gives the axes their joints. Without names, axes in position mode are joints of the same name.
pub(super) fn arm(arm: &mut Arm, axes: &[Axis], entry: Place<'_>) -> Checked<()> {
    let same = |axis: &Axis| {
        (arm.joint_of.is_empty() && is_streamed_position(axis.mode)).then(|| axis.name.clone())
    };
    let mut joints: Vec<Option<String>> = axes.iter().map(same).collect();
    let entry = entry.key("joints");
    for (axis, joint) in &arm.joint_of {
        let place = entry.key(axis);
        check_readable(joint, place)?;
        let index = axis_called(axis, axes, "as a joint", entry.name_of(axis))?;
        if joints.iter().flatten().any(|other| other == joint) {
            let found = format!("joint \"{joint}\" for a second axis");
            return Err(Problem::new(place, found, "a joint for each axis", "name another joint"));
        }
        joints[index] = Some(joint.clone());
    }
    arm.joints = joints;
    Ok(())
}

/// Frame of a robot without a base to which others are fixed.
const ROOT: &str = "base_link";

/// `has_urdf`: links of a URDF may be parents, too; the URDF has not been read yet.
pub(super) fn frames(
    frames: &mut [Frame],
    base: Option<&Base>,
    axes: &[Axis],
    has_urdf: bool,
    entries: Place<'_>,
) -> Checked<()> {
    let root = base.map_or(ROOT, |base| base.base_frame.as_str());
    let wheels: Vec<&str> =
        base.map_or(&[][..], |base| &base.wheels).iter().map(|&it| axes[it].name.as_str()).collect();
    let mut parents: HashMap<String, String> = wheels.iter().map(|&it| (it.into(), root.into())).collect();
    parents.insert(root.into(), String::new());
    for (index, frame) in frames.iter_mut().enumerate() {
        if frame.parent.is_empty() {
            root.clone_into(&mut frame.parent);
        }
        let odometry = base.is_some_and(|base| base.odometry_frame == frame.name);
        if odometry || parents.insert(frame.name.clone(), frame.parent.clone()).is_some() {
            let found = format!("a second frame \"{}\"", frame.name);
            let place = entries.item(index).key("name");
            let expected = "a name used once: the names of base, odometry and wheels are taken";
            return Err(Problem::new(place, found, expected, "rename it"));
        }
    }
    for (index, frame) in frames.iter().enumerate() {
        let place = || entries.item(index).key("parent");
        if !has_urdf && !parents.contains_key(&frame.parent) {
            let found = format!("the frame \"{}\" on the unknown frame \"{}\"", frame.name, frame.parent);
            let known = parents.keys().map(String::as_str);
            return Err(unknown_name(
                place(),
                found,
                "the name of a frame",
                &frame.parent,
                known,
                "parent",
            ));
        }
        let up = std::iter::successors(Some(&frame.parent), |name| parents.get(*name));
        if up.take(parents.len() + 1).any(|name| *name == frame.name) {
            let found = format!("the frame \"{}\", which is fixed to itself", frame.name);
            let expected = "frames that lead to that of the base";
            return Err(Problem::new(place(), found, expected, "correct parent"));
        }
    }
    Ok(())
}

/// Index of the axis with this name.
pub(super) fn axis_called(name: &str, axes: &[Axis], where_: &str, place: Place<'_>) -> Checked<usize> {
    axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
        let found = format!("the unknown axis \"{name}\" {where_}");
        let known = axes.iter().map(|axis| axis.name.as_str());
        unknown_name(place, found, "the name of an [[axis]]", name, known, "the name")
    })
}
