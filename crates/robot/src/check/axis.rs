//! Checks of the axes, and of their drives' ability to serve them.
//!
//! Checks that the counts of a drive hold the positions of an axis and its set-points.
//!
//! Checks of a jog: slow, and within the jog_limits of its axis.

use std::collections::{HashMap, HashSet};
use std::mem;
use std::ops::Range;

use ethercat::cia402::ModeOfOperation;
use ethercat::cia402::object::{MODES_OF_OPERATION, MOST_AXES, of_axis};
use ethercat::pdo::Direction;
use motion::homing::FARTHEST;
use motion::supervision::{JogLimits, Limits};
use motion::{AxisScale, NewtonMetres, Radians, RadiansPerSecond};
use types::number::Rounded;
use types::{AxisMode, CyclicMode};

use super::brake::Brakes;
use super::repeat::{Repetition, axis_sub_device, repetitions};
use super::{Checked, bus, homing, in_every_cycle, interlock};
use crate::error::Problem;
use crate::field::Number;
use crate::field::Place;
use crate::model::{
    ApplicationKind, Axis, Bus, CHANGE_OBJECTS, Cycle, JogKeys, ModeObject, SubDevice, mode_objects,
    profile_objects,
};

/// Completes the axes, and puts each repetition of an entry in its place.
pub(super) fn axes(axes: &mut Vec<Axis>, bus: &Bus, cycle: &Cycle, entries: Place<'_>) -> Checked<()> {
    let positions: HashMap<&str, usize> =
        bus.sub_devices.iter().enumerate().map(|(position, it)| (it.name.as_str(), position)).collect();
    let (mut names, mut of_entry) = (HashSet::new(), Vec::new());
    let mut drives = HashMap::new();
    let mut brakes = Brakes::new(bus, &positions);
    for (index, mut entry) in mem::take(axes).into_iter().enumerate() {
        let place = entries.item(index);
        entry.scale = scale(&entry, place)?;
        entry.limits.step = step(&entry, cycle, place.key("limits"))?;
        check_stop_deceleration(&entry, place.key("limits"))?;
        check_slowest(&entry, place.key("limits"))?;
        check_feedback_velocity(&entry, place)?;
        entry.jog = Some(jog_limits(entry.jog_keys, &entry.limits, place.key("jog"))?);
        counts(&entry, place)?;
        homing::check_memory(&entry, cycle, place)?;
        entry.homing = homing::homing(entry.homing_settings.as_mut(), &entry.limits, place.key("homing"))?;
        for (step, repetition) in repetitions(&entry.name, entry.count, entry.first, place)?.enumerate() {
            let drive = place.key("sub_device");
            let sub_device = axis_sub_device(&entry.drive, &repetition, &positions, "", drive)?;
            let who = format!("axis \"{}\"", repetition.name);
            in_every_cycle(&who, &bus.sub_devices[sub_device], drive)?;
            bus::of_axis(&repetition.name, &bus.sub_devices[sub_device], drive)?;
            let brake = brakes.brake((&entry, sub_device), &repetition, step, place.key("brake"))?;
            let drive_axis = drive_axis(&entry, &repetition, step, &bus.sub_devices[sub_device], place)?;
            let name = repetition.name.clone();
            if !names.insert(name.clone()) {
                let found = format!("a second axis \"{name}\"");
                return Err(Problem::new(place.key("name"), found, "every name once", "rename one"));
            }
            if let Some(other) = drives.insert((sub_device, drive_axis), name.clone()) {
                let found = format!(
                    "axis {} of SubDevice {sub_device} for axis \"{name}\"; \"{other}\" has it",
                    drive_axis + 1
                );
                let remedy = "give each its own SubDevice, or drive_axis where one has several";
                return Err(Problem::new(drive, found, "every axis of a drive once", remedy));
            }
            let to_stop = entry.to_stop.iter().map(|it| repetition.fill(it)).collect();
            let position_sense = homing::position_sense(&entry, &bus.sub_devices[sub_device], place)?;
            let needs_homing = homing::is_required(&entry, &position_sense);
            homing::check_way_back(&entry, &position_sense, place)?;
            let axis = Axis {
                name,
                to_stop,
                sub_device,
                drive_axis,
                brake,
                position_sense,
                needs_homing,
                ..entry.clone()
            };
            check_mapping(&axis, &bus.sub_devices[sub_device], place)?;
            check_startup_mode(&axis, &bus.sub_devices[sub_device], place)?;
            check_startup_profile(&axis, axis.mode, &bus.sub_devices[sub_device], place.key("mode"))?;
            if let Some(method) = axis.homing_settings.and_then(|it| it.method) {
                homing::check_drive(method, &axis, &bus.sub_devices[sub_device], place.key("homing"))?;
            }
            axes.push(axis);
            of_entry.push(index);
        }
    }
    interlock::stops(axes, |axis| entries.item(of_entry[axis]))
}

/// Axis of its drive, from 0. Axes of one entry on one SubDevice take its axes one by one. If each
/// axis has its own SubDevice, all take the same axis of each.
fn drive_axis(
    axis: &Axis,
    repetition: &Repetition,
    step: usize,
    drive: &SubDevice,
    entry: Place<'_>,
) -> Checked<u8> {
    let further = if repetition.changes(&axis.drive) { 0 } else { step };
    let simulated = drive.simulation.as_ref().filter(|it| it.application == ApplicationKind::ServoDrive);
    let most = simulated.map_or(MOST_AXES, |it| it.axes);
    let number = usize::from(axis.first_axis) + further;
    if number < usize::from(most) {
        return Ok(number as u8);
    }
    let (name, wanted) = (&repetition.name, number + 1);
    let found = format!("axis {wanted} of \"{}\" for axis \"{name}\"", drive.name);
    let place = if entry.has("drive_axis") { entry.key("drive_axis") } else { entry.key("sub_device") };
    let (expected, remedy) = match simulated {
        Some(it) if it.axes == 1 => (
            "axis 1, the only one it is simulated with".to_owned(),
            "name another SubDevice, or raise axes in its simulate",
        ),
        Some(it) => {
            (format!("1 to {}, the axes it is simulated with", it.axes), "raise axes in its simulate")
        }
        None => (format!("at most {MOST_AXES} axes of a drive"), "correct it"),
    };
    Err(Problem::new(place, found, expected, remedy))
}

fn scale(axis: &Axis, entry: Place<'_>) -> Checked<AxisScale> {
    let scale = AxisScale::new(axis.counts_per_revolution, axis.gear_ratio, axis.rated_torque);
    scale.map_err(|error| {
        let place = entry.first_of(&["gear_ratio", "counts_per_revolution"]);
        Problem::new(place, error.to_string(), "numbers of a real axis", "correct them")
    })
}

/// Largest step of a cycle; by default twice the travel at full speed: one cycle may be lost
/// without a stop.
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
    let expected = format!("at least {:.6} rad, a period at the velocity limit", Number(at_full_speed));
    let remedy = "raise it, or lower the velocity limit";
    Err(Problem::new(limits.key("maximum_step"), found, expected, remedy))
}

/// Checks that a stop brakes at least as hard as a motion.
fn check_stop_deceleration(axis: &Axis, limits: Place<'_>) -> Checked<()> {
    let (found, least) = (axis.limits.deceleration, axis.limits.acceleration);
    if found >= least {
        return Ok(());
    }
    let found = format!("stop_deceleration = {}", Number(found.0));
    let expected = format!("at least the acceleration limit, {} rad/s\u{b2}", Number(least.0));
    let remedy = "raise it, lower acceleration, or leave it out";
    Err(Problem::new(limits.key("stop_deceleration"), found, expected, remedy))
}

/// Checks that the axis moves at its velocity limit: by a count of its encoder in a second, or by
/// [`SLOWEST`].
fn check_slowest(axis: &Axis, limits: Place<'_>) -> Checked<()> {
    let least = SLOWEST.min(1.0 / axis.scale.counts_per_radian().abs());
    let limit = axis.limits.velocity.0;
    if limit >= least {
        return Ok(());
    }
    let found = format!("velocity = {}", Number(limit));
    let expected = format!("at least {} rad/s: slower axes do not move", Rounded(least));
    Err(Problem::new(limits.key("velocity"), found, expected, "raise it"))
}

/// Velocity limit that every axis may have, rad/s: a turn in ten weeks.
const SLOWEST: f64 = 1e-6;

/// Checks that positions remain plausible at the velocity limit of the axis.
fn check_feedback_velocity(axis: &Axis, entry: Place<'_>) -> Checked<()> {
    let limit = axis.limits.velocity;
    let Some(velocity) = axis.feedback_velocity.filter(|&velocity| velocity < limit) else { return Ok(()) };
    let found = format!("feedback_velocity = {}", Number(velocity.0));
    let expected = format!("at least its limit of velocity, {} rad/s", Number(limit.0));
    let remedy = "raise it to the speed at which the axis can be moved at all, or leave it out";
    Err(Problem::new(entry.key("feedback_velocity"), found, expected, remedy))
}

/// Checks that the explicit mapping carries the objects of the mode (CiA 402-2).
fn check_mapping(axis: &Axis, drive: &SubDevice, entry: Place<'_>) -> Checked<()> {
    let (key, remedy) = match axis.drive_axis {
        0 => ("mode", "map it, or choose another mode"),
        _ => ("drive_axis", "map it, or correct drive_axis"),
    };
    let place = entry.first_of(&[key, "sub_device"]);
    check_objects((axis, axis.mode), drive, &mode_objects(axis.mode), (place.into(), remedy))
}

/// Checks that an axis can be brought to a further mode while the cycle runs.
pub(super) fn check_further_mode(
    axis: &Axis,
    mode: AxisMode,
    drive: &SubDevice,
    place: Place<'_>,
) -> Checked<()> {
    let remedy = "map it, or choose another mode";
    let objects = mode_objects(mode).into_iter().chain(CHANGE_OBJECTS).collect::<Vec<_>>();
    check_objects((axis, mode), drive, &objects, (place.into(), remedy))?;
    check_startup_profile(axis, mode, drive, place)
}

fn check_objects(
    (axis, mode): (&Axis, AxisMode),
    drive: &SubDevice,
    objects: &[ModeObject],
    (place, remedy): (Range<usize>, &'static str),
) -> Checked<()> {
    let Some(mapping) = drive.explicit_mapping() else { return Ok(()) };
    let missing = objects.iter().find(|object| {
        let index = of_axis(object.index, axis.drive_axis);
        match object.direction {
            Direction::Output => mapping.output(index, object.sub_index).is_none(),
            Direction::Input => mapping.input(index, object.sub_index).is_none(),
        }
    });
    missing.map_or(Ok(()), |object| {
        let (mode, index) = (mode.name(), of_axis(object.index, axis.drive_axis));
        let sub_index = if object.sub_index > 0 { format!(":{}", object.sub_index) } else { String::new() };
        let found = format!("axis \"{}\" in mode {mode} without object {index:#06x}{sub_index}", axis.name);
        let (direction, name) = (object.direction, object.name);
        let expected = format!("{name} among the {direction}s of \"{}\"", drive.name);
        Err(Problem::new(place, found, expected, remedy))
    })
}

/// Checks that no start-up SDO says how fast a drive makes its own way: the limits of the axis do.
fn check_startup_profile(axis: &Axis, mode: AxisMode, drive: &SubDevice, place: Place<'_>) -> Checked<()> {
    let written = |&&(index, _): &&(u16, &str)| {
        drive.startup.iter().any(|sdo| sdo.index == of_axis(index, axis.drive_axis))
    };
    let Some((index, name)) = profile_objects(mode).iter().find(written) else { return Ok(()) };
    let index = of_axis(*index, axis.drive_axis);
    let found =
        format!("axis \"{}\" in mode {} and a start-up SDO to {index:#06x}", axis.name, mode.name());
    let expected = format!("the {name} that follows from its limits");
    Err(Problem::new(place, found, expected, "remove that start-up SDO, and set the limits"))
}

/// Checks that no start-up SDO sets another mode than the axis's.
fn check_startup_mode(axis: &Axis, drive: &SubDevice, entry: Place<'_>) -> Checked<()> {
    let mode = of_axis(MODES_OF_OPERATION, axis.drive_axis);
    match drive.startup.iter().rfind(|sdo| sdo.index == mode) {
        Some(sdo) if sdo.data != [ModeOfOperation::from(axis.mode).number() as u8] => {
            let found = format!("axis \"{}\" in mode {}", axis.name, axis.mode.name());
            let expected = format!("the mode that start-up writes to {mode:#06x} ({:?})", sdo.data);
            let remedy = "remove that start-up SDO: the axis sets its mode itself";
            Err(Problem::new(entry.key("mode"), found, expected, remedy))
        }
        _ => Ok(()),
    }
}

/// Checks the scale against limits, step and homing.
pub(super) fn counts(axis: &Axis, entry: Place<'_>) -> Checked<()> {
    let counts = axis.scale.counts_per_radian().abs();
    let limits = &axis.limits;
    let scale = || entry.first_of(&["counts_per_revolution", "gear_ratio"]);
    let refuse = |found: String, expected: &'static str| {
        let remedy = "correct counts_per_revolution, gear_ratio or limits";
        Err(Problem::new(scale(), found, expected, remedy))
    };
    if let Some((lowest, highest)) = limits.position {
        let span = (highest - lowest).0 * counts;
        if !(1.0..MOST_COUNTS).contains(&span) {
            let found = format!("{} counts between the position limits", Number(span));
            return refuse(found, "1 to 4294967295, the counts that a target of 32 bits distinguishes");
        }
    }
    let step = limits.step.0 * counts;
    if step >= MOST_COUNTS / 2.0 {
        let found = format!("{} counts in a step of one cycle", Number(step));
        return refuse(found, "below 2147483648, so that 32 bits of counts show the direction");
    }
    let velocity = limits.velocity.0 * counts;
    if axis.mode.cyclic() == CyclicMode::Velocity && velocity >= MOST_COUNTS / 2.0 {
        let found = format!("{} counts/s at the velocity limit", Number(velocity));
        return refuse(found, "below 2147483648, the highest target velocity of 32 bits");
    }
    let given = axis.homing_settings.as_ref();
    let places =
        [("offset", given.and_then(|it| it.offset)), ("position", given.and_then(|it| it.position))];
    for (key, place) in places {
        let Some(place) = place.filter(|it| it.0.abs() > FARTHEST.0) else { continue };
        let found = format!("homing.{key} = {}", Number(place.0));
        let expected = "at most 1e8 rad from 0, where counts are still distinguished";
        return Err(Problem::new(entry.key("homing").key(key), found, expected, "correct it"));
    }
    Ok(())
}

/// Counts that 32 bits distinguish.
const MOST_COUNTS: f64 = 4_294_967_296.0;

/// Limits of a jog of an axis with these limits.
pub(super) fn jog_limits(keys: JogKeys, limits: &Limits, entry: Place<'_>) -> Checked<JogLimits> {
    let usual = JogLimits::usual(limits);
    let within = |key: &'static str, given: Option<f64>, usual: f64, most: f64, of: &str| match given {
        None => Ok(usual),
        Some(given) if given <= most => Ok(given),
        Some(given) => Err(Problem::new(
            entry.key(key),
            format!("{key} = {} of a jog", Number(given)),
            format!("at most the {of} limit of the axis, {}", Number(most)),
            format!("lower {key}"),
        )),
    };
    let velocity = keys.velocity.map(|it| it.0);
    let torque = keys.torque.map(|it| it.0);
    let velocity = within("velocity", velocity, usual.velocity.0, limits.velocity.0, "velocity")?;
    let torque = within("torque", torque, usual.torque.0, limits.torque.0, "torque")?;
    Ok(JogLimits { velocity: RadiansPerSecond(velocity), torque: NewtonMetres(torque) })
}
