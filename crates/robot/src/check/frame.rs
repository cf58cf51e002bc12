//! Checks of frames: unique names, existing parents, and no loops.

use std::collections::HashMap;

use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::model::{Axis, Base, Frame};
use crate::place::Place;

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
