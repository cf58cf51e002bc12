//! Checks of a controller of the arm's tool.

use ethercat::cia402::CyclicMode;
use motion::{MetresPerSecond, RadiansPerSecond};
use toml::Spanned;

use crate::check::{Checked, number};
use crate::error::Problem;
use crate::file;
use crate::model::{Arm, Axis, Cartesian};

/// Speeds of `entry`.
pub(super) fn cartesian(entry: &file::Controller) -> Checked<Cartesian> {
    let speed = |key, value: &Option<Spanned<f64>>, usual| {
        value.as_ref().map_or(Ok(usual), |value| number::positive(key, value))
    };
    Ok(Cartesian {
        linear_velocity: MetresPerSecond(speed("linear_velocity", &entry.linear_velocity, USUAL_LINEAR)?),
        angular_velocity: RadiansPerSecond(speed(
            "angular_velocity",
            &entry.angular_velocity,
            USUAL_ANGULAR,
        )?),
    })
}

/// Indices of the axes that are joints of the arm, all in mode csp.
pub(super) fn joints(entry: &file::Controller, axes: &[Axis], arm: Option<&Arm>) -> Checked<Vec<usize>> {
    let place = entry.kind.span();
    let Some(arm) = arm else {
        let remedy = "describe one, or choose another kind";
        return Err(Problem::new(place, "cartesian without an [arm]", "an [arm] with its urdf", remedy));
    };
    let joints: Vec<usize> = (0..axes.len()).filter(|&index| arm.joints[index].is_some()).collect();
    if entry.axes.is_some() {
        return Ok(joints);
    }
    if joints.is_empty() {
        let found = "cartesian without an axis to move";
        return Err(Problem::new(place, found, "axes in [arm.joints]", "name the joints of the arm"));
    }
    if let Some(axis) = joints.iter().map(|&index| &axes[index]).find(|it| it.mode != CyclicMode::Position)
    {
        let found = format!("axis \"{}\" in mode {} for cartesian", axis.name, axis.mode.name());
        let remedy = "change the mode, or name the joints between base and tool in axes";
        return Err(Problem::new(place, found, "mode csp", remedy));
    }
    Ok(joints)
}

/// Checks that each of `indices` is one of the arm's `joints`.
pub(super) fn check(
    names: &Spanned<Vec<Spanned<String>>>,
    indices: &[usize],
    axes: &[Axis],
    joints: Vec<usize>,
) -> Checked<()> {
    let other = indices.iter().find(|index| !joints.contains(index));
    other.map_or(Ok(()), |&index| {
        let name = &axes[index].name;
        let found = format!("axis \"{name}\" for cartesian, which is no joint of the [arm]");
        let place =
            names.get_ref().iter().find(|it| it.get_ref() == name).map_or(names.span(), Spanned::span);
        Err(Problem::new(place, found, "axes in [arm.joints]", "remove it, or name its joint"))
    })
}

/// Default speeds, m/s and rad/s: those at which people may work beside an arm.
const USUAL_LINEAR: f64 = 0.25;
const USUAL_ANGULAR: f64 = 1.0;
