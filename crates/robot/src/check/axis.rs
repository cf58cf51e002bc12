//! Checks of the axes, and of their drives' ability to serve them.

use std::collections::{HashMap, HashSet};
use std::mem;

use ethercat::cia402::{ModeOfOperation, object::MODES_OF_OPERATION};
use motion::{AxisScale, Radians};

use super::brake::Brakes;
use super::repeat::{Repetition, repetitions};
use super::{Checked, homing, unknown_name};
use crate::error::Problem;
use crate::model::{Axis, Bus, Cycle, ObjectDirection, SubDevice, mode_objects};
use crate::source::Place;

/// Completes the axes, and puts each repetition of an entry in its place.
pub(super) fn axes(axes: &mut Vec<Axis>, bus: &Bus, cycle: &Cycle, entries: Place<'_>) -> Checked<()> {
    let positions: HashMap<&str, usize> =
        bus.sub_devices.iter().enumerate().map(|(position, it)| (it.name.as_str(), position)).collect();
    let mut names = HashSet::new();
    let mut drives = HashMap::new();
    let mut brakes = Brakes::new(bus, &positions);
    for (index, mut entry) in mem::take(axes).into_iter().enumerate() {
        let place = entries.item(index);
        entry.scale = scale(&entry, place)?;
        entry.limits.step = step(&entry, cycle, place.key("limits"))?;
        entry.homing = homing::homing(entry.homing_settings.as_mut(), &entry.limits, place.key("homing"))?;
        for (step, repetition) in repetitions(&entry.name, entry.count, entry.first, place)?.enumerate() {
            let drive = place.key("sub_device");
            let sub_device = find(&entry.drive, &repetition, &positions, "", drive)?;
            let brake = brakes.brake(&entry, &repetition, step, place.key("brake"))?;
            let name = repetition.name;
            if !names.insert(name.clone()) {
                let found = format!("a second axis \"{name}\"");
                return Err(Problem::new(place.key("name"), found, "every name once", "rename one"));
            }
            if let Some(other) = drives.insert(sub_device, name.clone()) {
                let found = format!("SubDevice {sub_device} for axis \"{name}\"; \"{other}\" has it");
                let remedy = "give each axis its own SubDevice";
                return Err(Problem::new(drive, found, "one axis a drive", remedy));
            }
            let axis = Axis { name, sub_device, brake, ..entry.clone() };
            check_mapping(&axis, &bus.sub_devices[sub_device], place)?;
            check_startup_mode(&axis, &bus.sub_devices[sub_device], place)?;
            if let Some(method) = axis.homing_settings.and_then(|it| it.method) {
                homing::check_drive(method, &axis.name, &bus.sub_devices[sub_device], place.key("homing"))?;
            }
            axes.push(axis);
        }
    }
    Ok(())
}

/// SubDevice of an axis, or `with` a part of it.
pub(super) fn find(
    wanted: &str,
    repetition: &Repetition,
    positions: &HashMap<&str, usize>,
    with: &str,
    place: Place<'_>,
) -> Checked<usize> {
    let name = repetition.fill(wanted);
    positions.get(name.as_str()).copied().ok_or_else(|| {
        let found = format!("axis \"{}\"{with} on the unknown SubDevice \"{name}\"", repetition.name);
        let expected = "the name of a SubDevice on the bus";
        unknown_name(place, found, expected, &name, positions.keys().copied(), "sub_device")
    })
}

fn scale(axis: &Axis, entry: Place<'_>) -> Checked<AxisScale> {
    let scale = AxisScale::new(axis.counts_per_revolution, axis.gear_ratio, axis.rated_torque);
    scale.map_err(|error| {
        let place = entry.first_of(&["gear_ratio", "counts_per_revolution"]);
        Problem::new(place, error.to_string(), "numbers of a real axis", "correct them")
    })
}

/// Largest step of a cycle; by default twice the travel at full speed: one cycle may be lost without a stop.
fn step(axis: &Axis, cycle: &Cycle, limits: Place<'_>) -> Checked<Radians> {
    let at_full_speed = axis.limits.velocity.0 * cycle.period.as_secs_f64();
    if !limits.has("maximum_step") {
        return Ok(Radians(2.0 * at_full_speed));
    }
    let step = axis.limits.step;
    if step.0 >= at_full_speed {
        return Ok(step);
    }
    let found = format!("maximum_step = {}", step.0);
    let expected = format!("at least {at_full_speed:.6} rad, a period at the velocity limit");
    let remedy = "raise it, or lower the velocity limit";
    Err(Problem::new(limits.key("maximum_step"), found, expected, remedy))
}

/// Checks that the explicit mapping carries the objects of the mode (CiA 402-2, cyclic modes).
fn check_mapping(axis: &Axis, drive: &SubDevice, entry: Place<'_>) -> Checked<()> {
    let Some(mapping) = drive.explicit_mapping() else { return Ok(()) };
    let missing = mode_objects(axis.mode).into_iter().find(|object| match object.direction {
        ObjectDirection::Output => mapping.output(object.index, 0).is_none(),
        ObjectDirection::Input => mapping.input(object.index, 0).is_none(),
    });
    missing.map_or(Ok(()), |object| {
        let (axis, mode) = (&axis.name, axis.mode.name());
        let found = format!("axis \"{axis}\" in mode {mode} without object {:#06x}", object.index);
        let (direction, name) = (object.direction.name(), object.name);
        let expected = format!("{name} among the {direction} of \"{}\"", drive.name);
        Err(Problem::new(entry.key("mode"), found, expected, "map it, or choose another mode"))
    })
}

/// Checks that no start-up SDO sets another mode than that of the axis.
fn check_startup_mode(axis: &Axis, drive: &SubDevice, entry: Place<'_>) -> Checked<()> {
    match drive.startup.iter().rfind(|sdo| sdo.index == MODES_OF_OPERATION) {
        Some(sdo) if sdo.data != [ModeOfOperation::from(axis.mode).number() as u8] => {
            let found = format!("axis \"{}\" in mode {}", axis.name, axis.mode.name());
            let expected = format!("the mode that start-up writes to 0x6060 ({:?})", sdo.data);
            let remedy = "remove that start-up SDO: the axis sets its mode itself";
            Err(Problem::new(entry.key("mode"), found, expected, remedy))
        }
        _ => Ok(()),
    }
}
