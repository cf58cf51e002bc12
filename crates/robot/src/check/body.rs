//! Checks of base and arm.

use std::collections::HashSet;

use ethercat::cia402::CyclicMode;
use motion::{
    MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, RadiansPerSecond, RadiansPerSecondCubed,
    RadiansPerSecondSquared, TwistLimits,
};
use toml::Spanned;

use super::controller::axis_called;
use super::{Checked, number, readable_name};
use crate::error::Problem;
use crate::file::{self, BaseKind as Kind};
use crate::model::{Arm, Axis, Base, BaseKind};

pub(super) fn base(entry: &Spanned<file::Base>, axes: &[Axis]) -> Checked<Base> {
    let base = entry.get_ref();
    let wheel_radius = match (&base.wheel_diameter, &base.wheel_radius) {
        (Some(diameter), None) => number::positive("wheel_diameter", diameter)? / 2.0,
        (None, Some(radius)) => number::positive("wheel_radius", radius)?,
        (given, _) => {
            let found = if given.is_some() { "a diameter and a radius" } else { "wheels without a size" };
            let expected = "wheel_diameter or wheel_radius, in m";
            return Err(Problem::new(entry.span(), found, expected, "give one of the two"));
        }
    };
    let described = Base {
        kind: kind(entry, axes)?,
        wheel_radius,
        track: number::positive("track", &base.track)?,
        limits: limits(&base.limits)?,
        odometry_frame: frame(base.odometry_frame.as_ref(), "odom")?,
        base_frame: frame(base.base_frame.as_ref(), "base_link")?,
    };
    check_speed(base, &described, axes)?;
    Ok(described)
}

fn kind(entry: &Spanned<file::Base>, axes: &[Axis]) -> Checked<BaseKind> {
    let base = entry.get_ref();
    let two = [("left", &base.left), ("right", &base.right)];
    let four = [
        ("front_left", &base.front_left),
        ("front_right", &base.front_right),
        ("rear_left", &base.rear_left),
        ("rear_right", &base.rear_right),
    ];
    let differential = *base.kind.get_ref() == Kind::Differential;
    let others = if differential { &four[..] } else { &two[..] };
    let mut misplaced: Vec<_> =
        others.iter().filter_map(|(key, wheel)| Some((*key, wheel.as_ref()?.span()))).collect();
    let lengths = [("wheelbase", &base.wheelbase, !differential)].into_iter().chain([(
        "roller_angle",
        &base.roller_angle,
        *base.kind.get_ref() == Kind::Mecanum,
    )]);
    let lengths = lengths.filter(|(.., belongs)| !belongs);
    misplaced.extend(lengths.filter_map(|(key, value, _)| Some((key, value.as_ref()?.span()))));
    if let Some((key, span)) = misplaced.into_iter().next() {
        let found = format!("{key} for a base of kind {}", name_of(*base.kind.get_ref()));
        let expected = "only what such a base has";
        return Err(Problem::new(span, found, expected, "remove it, or change kind"));
    }
    let mut taken = HashSet::new();
    let mut wheel = |(key, name): (&str, &Option<Spanned<String>>)| {
        let missing = || {
            let found = format!("a base of kind {} without {key}", name_of(*base.kind.get_ref()));
            Problem::new(entry.span(), found, format!("{key} = the name of its wheel's axis"), "add it")
        };
        let name = name.as_ref().ok_or_else(missing)?;
        let index = axis_called(name, axes, "as a wheel")?;
        let mode = axes[index].mode;
        if mode != CyclicMode::Velocity {
            let found = format!("wheel \"{}\" in mode {}", name.get_ref(), mode.name());
            return Err(Problem::new(name.span(), found, "mode csv", "change the axis's mode"));
        }
        if !taken.insert(index) {
            let found = format!("axis \"{}\" for a second wheel", name.get_ref());
            return Err(Problem::new(name.span(), found, "an axis for each wheel", "name another axis"));
        }
        Ok(index)
    };
    let wheelbase = || {
        let missing = || {
            let found = format!("a base of kind {} without wheelbase", name_of(*base.kind.get_ref()));
            Problem::new(entry.span(), found, "wheelbase = ..., in m", "add it")
        };
        number::positive("wheelbase", base.wheelbase.as_ref().ok_or_else(missing)?)
    };
    match base.kind.get_ref() {
        Kind::Differential => Ok(BaseKind::Differential { left: wheel(two[0])?, right: wheel(two[1])? }),
        Kind::Mecanum => Ok(BaseKind::Mecanum {
            wheels: [wheel(four[0])?, wheel(four[1])?, wheel(four[2])?, wheel(four[3])?],
            wheelbase: wheelbase()?,
            roller_angle: base.roller_angle.as_ref().map_or(Ok(USUAL_ROLLER_ANGLE), roller_angle)?,
        }),
        Kind::Omni => Ok(BaseKind::Omni {
            wheels: [wheel(four[0])?, wheel(four[1])?, wheel(four[2])?, wheel(four[3])?],
            wheelbase: wheelbase()?,
        }),
    }
}

fn roller_angle(angle: &Spanned<f64>) -> Checked<f64> {
    let radians = number::positive("roller_angle", angle)?;
    if (ROLLER_ANGLES.0..=ROLLER_ANGLES.1).contains(&radians) {
        return Ok(radians);
    }
    let found = format!("roller_angle = {radians}");
    let expected = format!("{} to {} rad", ROLLER_ANGLES.0, ROLLER_ANGLES.1);
    Err(Problem::new(angle.span(), found, expected, "give it in radians, as 0.7854"))
}

fn limits(limits: &file::BaseLimits) -> Checked<TwistLimits> {
    let acceleration = number::positive("acceleration", &limits.acceleration)?;
    let yaw_acceleration = number::positive("yaw_acceleration", &limits.yaw_acceleration)?;
    let jerk = |key, value: &Option<Spanned<f64>>, acceleration: f64| {
        value.as_ref().map_or(Ok(acceleration / USUAL_RISE), |value| number::positive(key, value))
    };
    Ok(TwistLimits {
        velocity: MetresPerSecond(number::positive("velocity", &limits.velocity)?),
        acceleration: MetresPerSecondSquared(acceleration),
        jerk: MetresPerSecondCubed(jerk("jerk", &limits.jerk, acceleration)?),
        yaw_velocity: RadiansPerSecond(number::positive("yaw", &limits.yaw)?),
        yaw_acceleration: RadiansPerSecondSquared(yaw_acceleration),
        yaw_jerk: RadiansPerSecondCubed(jerk("yaw_jerk", &limits.yaw_jerk, yaw_acceleration)?),
    })
}

fn frame(name: Option<&Spanned<String>>, usual: &str) -> Checked<String> {
    name.map_or(Ok(usual.to_owned()), |name| readable_name(name).map(|()| name.get_ref().clone()))
}

/// Checks that the wheels turn fast enough for the base's highest speed straight ahead.
fn check_speed(entry: &file::Base, base: &Base, axes: &[Axis]) -> Checked<()> {
    let needed = base.limits.velocity.0 / base.wheel_radius;
    let slow = base.wheels().into_iter().find(|&wheel| axes[wheel].limits.velocity.0 < needed);
    slow.map_or(Ok(()), |wheel| {
        let found =
            format!("velocity = {}, at which wheels turn at {needed:.3} rad/s", base.limits.velocity.0);
        let Axis { name, limits, .. } = &axes[wheel];
        let expected = format!("at most the velocity limit of \"{name}\", {} rad/s", limits.velocity.0);
        let remedy = "lower it, or raise the axis's limit";
        Err(Problem::new(entry.limits.velocity.span(), found, expected, remedy))
    })
}

pub(super) fn arm(entry: &file::Arm, axes: &[Axis]) -> Checked<Arm> {
    let mut joints: Vec<Option<String>> = if entry.joints.is_empty() {
        // Only position axes: the axes of an arm are joints of the same name.
        let named = |axis: &Axis| (axis.mode == CyclicMode::Position).then(|| axis.name.clone());
        axes.iter().map(named).collect()
    } else {
        vec![None; axes.len()]
    };
    for (axis, joint) in &entry.joints {
        readable_name(joint)?;
        let index = axis_called(axis, axes, "as a joint")?;
        if joints.iter().flatten().any(|other| other == joint.get_ref()) {
            let found = format!("joint \"{}\" for a second axis", joint.get_ref());
            return Err(Problem::new(joint.span(), found, "a joint for each axis", "name another joint"));
        }
        joints[index] = Some(joint.get_ref().clone());
    }
    let file::Arm { urdf, base, tool, .. } = entry;
    Ok(Arm { urdf: urdf.clone(), base: base.clone(), tool: tool.clone(), joints })
}

const fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Differential => "differential",
        Kind::Mecanum => "mecanum",
        Kind::Omni => "omni",
    }
}

/// Default rise time of the full acceleration, s.
const USUAL_RISE: f64 = 0.1;

const USUAL_ROLLER_ANGLE: f64 = core::f64::consts::FRAC_PI_4;

/// Range of the roller angle, rad: rollers across turn freely, rollers along have no effect; a base can be
/// steered only in between.
const ROLLER_ANGLES: (f64, f64) = (0.1, 1.47);
