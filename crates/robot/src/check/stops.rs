//! Checks of the axes that are stopped with others: names to places.

use std::collections::HashMap;

use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::model::Axis;
use crate::place::Place;

/// Finds the axes that each of `axes` stops; `entry` is where one is described.
pub(super) fn stops<'s>(axes: &mut [Axis], entry: impl Fn(usize) -> Place<'s>) -> Checked<()> {
    let places: HashMap<String, usize> =
        axes.iter().enumerate().map(|(place, axis)| (axis.name.clone(), place)).collect();
    for (number, axis) in axes.iter_mut().enumerate() {
        let Axis { name, to_stop, stops, .. } = axis;
        for (index, wanted) in to_stop.iter().enumerate() {
            let place = entry(number).key("stops").item(index);
            let Some(&other) = places.get(wanted) else {
                let found = format!("axis \"{name}\" that stops the unknown axis \"{wanted}\"");
                let known = places.keys().map(String::as_str);
                return Err(unknown_name(place, found, "the name of an axis", wanted, known, "stops"));
            };
            if stops.contains(&other) {
                let found = format!("axis \"{name}\" that stops \"{wanted}\" twice");
                return Err(Problem::new(place, found, "every axis once", "remove one"));
            }
            // A list for all of an entry with count names each of them.
            if other != number {
                stops.push(other);
            } else if axis.count.is_none() {
                let found = format!("axis \"{name}\" that stops itself");
                return Err(Problem::new(place, found, "names of other axes", "remove it"));
            }
        }
    }
    Ok(())
}
