//! Checks of a controller of the arm's tool.

use crate::check::Checked;
use crate::check::body::is_streamed_position;
use crate::error::Problem;
use crate::field::Place;
use crate::model::{Arm, Axis, Controller};

/// Indices of the axes that are joints of the arm, all in mode csp.
pub(super) fn joints(
    it: &Controller,
    axes: &[Axis],
    arm: Option<&Arm>,
    entry: Place<'_>,
) -> Checked<Vec<usize>> {
    let place = entry.key("kind");
    let Some(arm) = arm else {
        let remedy = "describe one, or choose another kind";
        return Err(Problem::new(place, "cartesian without an [arm]", "an [arm] with its urdf", remedy));
    };
    let joints: Vec<usize> = (0..axes.len()).filter(|&index| arm.joints[index].is_some()).collect();
    if it.axis_names.is_some() {
        return Ok(joints);
    }
    if joints.is_empty() {
        let found = "cartesian without an axis to move";
        return Err(Problem::new(place, found, "axes in [arm.joints]", "name the joints of the arm"));
    }
    if let Some(axis) = joints.iter().map(|&index| &axes[index]).find(|it| !is_streamed_position(it.mode)) {
        let found = format!("axis \"{}\" in mode {} for cartesian", axis.name, axis.mode.name());
        let remedy = "change the mode, or name the joints between base and tool in axes";
        return Err(Problem::new(place, found, "mode csp or ip", remedy));
    }
    Ok(joints)
}

/// Checks that each of `indices` is one of the arm's `joints`.
pub(super) fn check(
    names: &[String],
    indices: &[usize],
    axes: &[Axis],
    joints: &[usize],
    place: Place<'_>,
) -> Checked<()> {
    let other = indices.iter().find(|index| !joints.contains(index));
    other.map_or(Ok(()), |&index| {
        let name = &axes[index].name;
        let found = format!("axis \"{name}\" for cartesian, which is no joint of the [arm]");
        let number = names.iter().position(|it| it == name).unwrap_or(0);
        let remedy = "remove it, or name its joint";
        Err(Problem::new(place.item(number), found, "axes in [arm.joints]", remedy))
    })
}
