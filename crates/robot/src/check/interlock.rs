//! Checks of interlocks, and of their digital inputs.
//!
//! Checks of the axes that are stopped with others: names to places.

use std::collections::HashMap;

use super::{Checked, in_every_cycle, unknown_name};
use crate::error::Problem;
use crate::field::Place;
use crate::model::{ApplicationKind, Axis, Bus, Interlock, InterlockKeys, MOST_BYTES, SubDevice};

pub(super) fn interlocks(
    keys: &[InterlockKeys],
    bus: &Bus,
    axes: &[Axis],
    entries: Place<'_>,
) -> Checked<Vec<Interlock>> {
    let mut found: Vec<Interlock> = Vec::new();
    for (index, keys) in keys.iter().enumerate() {
        let entry = entries.item(index);
        let one = interlock(keys, bus, axes, entry)?;
        if found.iter().any(|other| other.name == one.name) {
            let what = format!("a second interlock \"{}\"", one.name);
            return Err(Problem::new(entry.key("name"), what, "every name once", "give it another name"));
        }
        found.push(one);
    }
    Ok(found)
}

fn interlock(keys: &InterlockKeys, bus: &Bus, axes: &[Axis], entry: Place<'_>) -> Checked<Interlock> {
    let InterlockKeys { name, kind, inverted, .. } = keys;
    let sub_device = position(keys, bus, entry.key("sub_device"))?;
    let who = format!("interlock \"{name}\"");
    in_every_cycle(&who, &bus.sub_devices[sub_device], entry.key("sub_device"))?;
    let there = digital_inputs(&bus.sub_devices[sub_device]);
    let most = there.unwrap_or(MOST_BYTES * 8);
    let channel = usize::try_from(keys.channel).ok().filter(|it| (1..=most).contains(it));
    let Some(channel) = channel else {
        let found = format!("channel {} for the interlock \"{name}\"", keys.channel);
        let sub_device = &bus.sub_devices[sub_device].name;
        let expected = match most {
            0 => format!("a SubDevice with digital inputs; \"{sub_device}\" has none"),
            most => format!("1 to {most}, the digital inputs of \"{sub_device}\""),
        };
        return Err(Problem::new(entry.key("channel"), found, expected, "correct sub_device or channel"));
    };
    let axis = |(index, wanted): (usize, &String)| {
        axes.iter().position(|axis| axis.name == *wanted).ok_or_else(|| {
            let found = format!("interlock \"{name}\" for the unknown axis \"{wanted}\"");
            let known = axes.iter().map(|axis| axis.name.as_str());
            let place = entry.key("axes").item(index);
            unknown_name(place, found, "the name of an axis", wanted, known, "axes")
        })
    };
    let axes = match &keys.axes {
        None => (0..axes.len()).collect(),
        Some(names) if names.is_empty() => {
            let found = format!("interlock \"{name}\" for no axis");
            let remedy = "name them, or remove axes for all";
            return Err(Problem::new(entry.key("axes"), found, "names of axes", remedy));
        }
        Some(names) => names.iter().enumerate().map(axis).collect::<Checked<_>>()?,
    };
    Ok(Interlock { name: name.clone(), kind: *kind, sub_device, channel, inverted: *inverted, axes })
}

fn position(keys: &InterlockKeys, bus: &Bus, place: Place<'_>) -> Checked<usize> {
    let wanted = &keys.sub_device;
    let names = || bus.sub_devices.iter().map(|it| it.name.as_str());
    names().position(|name| name == wanted).ok_or_else(|| {
        let found = format!("interlock \"{}\" on the unknown SubDevice \"{wanted}\"", keys.name);
        let expected = "the name of a SubDevice on the bus";
        unknown_name(place, found, expected, wanted, names(), "sub_device")
    })
}

/// Number of its digital inputs; `None` where only its SII gives it, which is checked when the bus
/// is there.
pub(super) fn digital_inputs(sub_device: &SubDevice) -> Option<usize> {
    if let Some(mapping) = sub_device.explicit_mapping() {
        return Some(mapping.digital_inputs().count());
    }
    let simulation = sub_device.simulation.as_ref()?;
    match simulation.application {
        ApplicationKind::DigitalInputs => Some(simulation.channels.into()),
        _ => simulation.sii.is_none().then_some(0),
    }
}

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
