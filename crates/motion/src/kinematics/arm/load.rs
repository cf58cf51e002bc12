//! From URDF to a row of joints.

use std::collections::{BTreeMap, BTreeSet};

use glam::{DQuat, DVec3, EulerRot};
use roxmltree::Document;

use super::urdf::{Joint, Urdf};
use super::{ArmError, ArmJoint, JointKind, SerialArm, Transform};

pub(super) fn arm(urdf: &str, base: Option<&str>, tip: Option<&str>) -> Result<SerialArm, ArmError> {
    let document = Document::parse(urdf).map_err(|error| ArmError::NoUrdf(error.to_string()))?;
    let robot = Urdf::read(&document)?;
    let base = base.map_or_else(|| root(&robot), |name| known(&robot, name))?;
    let tip = tip.map_or_else(|| only_end(&robot), |name| known(&robot, name))?;
    let mut arm = SerialArm {
        joints: Vec::new(),
        tip: Transform::IDENTITY,
        base_link: base.to_owned(),
        tip_link: tip.to_owned(),
    };
    for joint in way(&robot, base, tip)? {
        let before = arm.tip * origin(joint)?;
        let Some(kind) = kind(joint)? else {
            arm.tip = before;
            continue;
        };
        arm.joints.push(ArmJoint {
            name: joint.name.to_owned(),
            kind,
            origin: before,
            axis: axis(joint)?,
            limits: limits(joint)?,
            velocity: joint.velocity,
            effort: joint.effort,
        });
        arm.tip = Transform::IDENTITY;
    }
    if arm.joints.is_empty() {
        return Err(ArmError::NoJoint { base: base.to_owned(), tip: tip.to_owned() });
    }
    Ok(arm)
}

/// The joints from `base` to `tip`.
fn way<'r, 'a>(robot: &'r Urdf<'a>, base: &str, tip: &str) -> Result<Vec<&'r Joint<'a>>, ArmError> {
    let mut above: BTreeMap<&str, &Joint<'_>> = BTreeMap::new();
    for joint in &robot.joints {
        if above.insert(joint.child, joint).is_some() {
            return Err(ArmError::TwoParents(joint.child.to_owned()));
        }
    }
    let mut joints = Vec::new();
    let mut link = tip;
    while link != base {
        match above.get(link) {
            Some(joint) if joints.len() < robot.joints.len() => {
                joints.push(*joint);
                link = joint.parent;
            }
            _ => return Err(ArmError::NoWay { base: base.to_owned(), tip: tip.to_owned() }),
        }
    }
    joints.reverse();
    Ok(joints)
}

fn known<'a>(robot: &Urdf<'a>, name: &str) -> Result<&'a str, ArmError> {
    robot.links.iter().copied().find(|link| *link == name).ok_or_else(|| ArmError::NoLink(name.to_owned()))
}

/// The only root link.
fn root<'a>(robot: &Urdf<'a>) -> Result<&'a str, ArmError> {
    let children: BTreeSet<&str> = robot.joints.iter().map(|joint| joint.child).collect();
    only(robot, &children).map_err(ArmError::Roots)
}

/// The only end link, without a child.
fn only_end<'a>(robot: &Urdf<'a>) -> Result<&'a str, ArmError> {
    let parents: BTreeSet<&str> = robot.joints.iter().map(|joint| joint.parent).collect();
    only(robot, &parents).map_err(ArmError::Ends)
}

fn only<'a>(robot: &Urdf<'a>, without: &BTreeSet<&str>) -> Result<&'a str, Vec<String>> {
    let names: Vec<&str> = robot.links.iter().copied().filter(|name| !without.contains(name)).collect();
    match names[..] {
        [name] => Ok(name),
        _ => Err(names.into_iter().map(str::to_owned).collect()),
    }
}

/// `None` for a fixed joint.
fn kind(joint: &Joint<'_>) -> Result<Option<JointKind>, ArmError> {
    match joint.kind {
        _ if joint.mimics => Err(ArmError::Kind { joint: joint.name.to_owned(), kind: "mimic".to_owned() }),
        "revolute" | "continuous" => Ok(Some(JointKind::Turns)),
        "prismatic" => Ok(Some(JointKind::Slides)),
        "fixed" => Ok(None),
        other => Err(ArmError::Kind { joint: joint.name.to_owned(), kind: other.to_owned() }),
    }
}

fn origin(joint: &Joint<'_>) -> Result<Transform, ArmError> {
    let [roll, pitch, yaw] = joint.rpy;
    if joint.xyz.iter().chain(&joint.rpy).any(|number| !number.is_finite()) {
        return Err(ArmError::Number { joint: joint.name.to_owned(), what: "origin" });
    }
    Ok(Transform {
        position: DVec3::from(joint.xyz),
        rotation: DQuat::from_euler(EulerRot::ZYX, yaw, pitch, roll),
    })
}

fn axis(joint: &Joint<'_>) -> Result<DVec3, ArmError> {
    let axis = DVec3::from(joint.axis);
    match axis.try_normalize() {
        Some(unit) if axis.length() > 1e-9 && unit.is_finite() => Ok(unit),
        _ => Err(ArmError::Number { joint: joint.name.to_owned(), what: "axis" }),
    }
}

fn limits(joint: &Joint<'_>) -> Result<(f64, f64), ArmError> {
    let &Joint { lower, upper, velocity, effort, .. } = joint;
    if [lower, upper, velocity, effort].iter().any(|number| number.is_nan()) {
        return Err(ArmError::Number { joint: joint.name.to_owned(), what: "limit" });
    }
    if joint.kind == "continuous" {
        return Ok((f64::NEG_INFINITY, f64::INFINITY));
    }
    if lower < upper {
        Ok((lower, upper))
    } else {
        Err(ArmError::Limits { joint: joint.name.to_owned(), lower, upper })
    }
}
