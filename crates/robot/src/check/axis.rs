//! Checks of the axes, and of their drives' ability to serve them.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use ethercat::cia402::{CyclicMode, ModeOfOperation, object::MODES_OF_OPERATION};
use motion::supervision::{FollowingErrorLimit, Limits};
use motion::{
    AxisScale, NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared,
    Seconds,
};
use toml::Spanned;

use super::brake::Brakes;
use super::repeat::{Repetition, repetitions};
use super::{Checked, homing, number};
use crate::error::Problem;
use crate::file;
use crate::model::{Axis, Bus, Cycle, Homing, ObjectDirection, mode_objects};
use crate::nearest::nearest;

pub(super) fn axes(entries: &[file::Axis], bus: &Bus, cycle: &Cycle) -> Checked<Vec<Axis>> {
    let positions: HashMap<&str, usize> =
        bus.sub_devices.iter().enumerate().map(|(position, it)| (it.name.as_str(), position)).collect();
    let mut names = HashSet::new();
    let mut drives = HashMap::new();
    let mut axes = Vec::new();
    let mut brakes = Brakes::new(bus, &positions);
    for entry in entries {
        let (mode, scale, limits) = (*entry.mode.get_ref(), scale(entry)?, limits(entry, cycle)?);
        let following_error = entry.following_error.as_ref().map(following_error).transpose()?;
        let homing = entry.homing.as_ref().map_or(Ok(Homing::Never), |it| homing::homing(it, &limits))?;
        let repeated =
            file::Repeated { name: &entry.name, count: entry.count.as_ref(), first: entry.first.as_ref() };
        for (step, repetition) in repetitions(&repeated)?.enumerate() {
            let sub_device = find(&entry.sub_device, &repetition, &positions, "")?;
            let brake = entry.brake.as_ref().map(|it| brakes.brake(it, &repetition, step)).transpose()?;
            let Repetition { name, .. } = repetition;
            if !names.insert(name.clone()) {
                let found = format!("a second axis \"{name}\"");
                return Err(Problem::new(entry.name.span(), found, "every name once", "rename one"));
            }
            if let Some(other) = drives.insert(sub_device, name.clone()) {
                let found = format!("SubDevice {sub_device} for axis \"{name}\"; \"{other}\" has it");
                let remedy = "give each axis its own SubDevice";
                return Err(Problem::new(entry.sub_device.span(), found, "one axis a drive", remedy));
            }
            check_mapping(&entry.mode, mode, &name, bus, sub_device)?;
            check_startup_mode(&entry.mode, mode, &name, bus, sub_device)?;
            if let (Some(place), Homing::Drive(drive)) = (&entry.homing, homing) {
                homing::check_drive(place, &drive, &name, &bus.sub_devices[sub_device])?;
            }
            axes.push(Axis {
                name,
                sub_device,
                mode,
                scale,
                limits,
                following_error,
                on_stale: entry.on_stale,
                homing,
                brake,
            });
        }
    }
    Ok(axes)
}

/// SubDevice of an axis, or `with` a part of it.
pub(super) fn find(
    wanted: &Spanned<String>,
    repetition: &Repetition,
    positions: &HashMap<&str, usize>,
    with: &str,
) -> Checked<usize> {
    let name = repetition.fill(wanted.get_ref());
    positions.get(name.as_str()).copied().ok_or_else(|| {
        let remedy = nearest(&name, positions.keys().copied())
            .map_or("correct sub_device".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("axis \"{}\"{with} on the unknown SubDevice \"{name}\"", repetition.name);
        Problem::new(wanted.span(), found, "the name of a SubDevice on the bus", remedy)
    })
}

fn scale(entry: &file::Axis) -> Checked<AxisScale> {
    let counts = number::positive("counts_per_revolution", &entry.counts_per_revolution)?;
    let torque = number::positive("rated_torque", &entry.rated_torque)?;
    let ratio = entry.gear_ratio.as_ref();
    let gear_ratio = ratio.map_or(Ok(1.0), |ratio| number::not_zero("gear_ratio", ratio))?;
    AxisScale::new(counts, gear_ratio, NewtonMetres(torque)).map_err(|error| {
        let place = ratio.map_or(entry.counts_per_revolution.span(), Spanned::span);
        Problem::new(place, error.to_string(), "numbers of a real axis", "correct them")
    })
}

fn limits(entry: &file::Axis, cycle: &Cycle) -> Checked<Limits> {
    let file::Limits { position, velocity, acceleration, jerk, torque, maximum_step } = &entry.limits;
    let velocity = number::positive("velocity", velocity)?;
    let or = |key, value: &Option<Spanned<f64>>, usual| {
        value.as_ref().map_or(Ok(usual), |value| number::positive(key, value))
    };
    let usual = Limits::usual_deceleration(RadiansPerSecond(velocity));
    let acceleration = or("acceleration", acceleration, usual.0)?;
    let jerk = or("jerk", jerk, Limits::usual_jerk(RadiansPerSecondSquared(acceleration)).0)?;
    let torque = number::positive("torque", torque)?;
    let position = match position {
        None => None,
        Some(range) => {
            let [lowest, highest] = *range.get_ref();
            if !(lowest.is_finite() && highest.is_finite() && lowest < highest) {
                let found = format!("position = [{lowest}, {highest}]");
                let expected = "the lowest and the highest position in rad";
                return Err(Problem::new(range.span(), found, expected, "correct position"));
            }
            Some((Radians(lowest), Radians(highest)))
        }
    };
    let step_at_full_speed = velocity * cycle.period.as_secs_f64();
    let maximum_step = match maximum_step {
        // Twice the travel of a cycle at full speed: one cycle may be lost without a stop.
        None => 2.0 * step_at_full_speed,
        Some(step) => {
            let radians = number::positive("maximum_step", step)?;
            if radians < step_at_full_speed {
                let found = format!("maximum_step = {radians}");
                let expected =
                    format!("at least {step_at_full_speed:.6} rad, a period at the velocity limit");
                let remedy = "raise it, or lower the velocity limit";
                return Err(Problem::new(step.span(), found, expected, remedy));
            }
            radians
        }
    };
    Ok(Limits {
        position,
        velocity: RadiansPerSecond(velocity),
        deceleration: RadiansPerSecondSquared(acceleration),
        jerk: RadiansPerSecondCubed(jerk),
        torque: NewtonMetres(torque),
        step: Radians(maximum_step),
    })
}

fn following_error(entry: &file::FollowingError) -> Checked<FollowingErrorLimit> {
    let window = number::positive("window", &entry.window)?;
    let time = entry.time.as_ref().map_or(Ok(USUAL_PATIENCE), |time| short("time", time))?;
    Ok(FollowingErrorLimit { distance: Radians(window), patience: Seconds(time.as_secs_f64()) })
}

/// Time of a mechanism, within its bounds.
pub(super) fn short(key: &str, length: &Spanned<file::Length>) -> Checked<Duration> {
    super::time_within(key, length, Duration::ZERO..=LONGEST_WAIT, &format!("shorten {key}"))
}

/// Default time of a following error.
const USUAL_PATIENCE: Duration = Duration::from_millis(50);

const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Checks that the explicit mapping carries the objects of the mode (CiA 402-2, cyclic modes).
fn check_mapping(
    place: &Spanned<CyclicMode>,
    mode: CyclicMode,
    axis: &str,
    bus: &Bus,
    sub_device: usize,
) -> Checked<()> {
    let Some(mapping) = bus.sub_devices[sub_device].explicit_mapping() else { return Ok(()) };
    let missing = mode_objects(mode).into_iter().find(|object| match object.direction {
        ObjectDirection::Output => mapping.output(object.index, 0).is_none(),
        ObjectDirection::Input => mapping.input(object.index, 0).is_none(),
    });
    missing.map_or(Ok(()), |object| {
        let found = format!("axis \"{axis}\" in mode {} without object {:#06x}", mode.name(), object.index);
        let (direction, name) = (object.direction.name(), object.name);
        let expected = format!("{name} among the {direction} of \"{}\"", bus.sub_devices[sub_device].name);
        Err(Problem::new(place.span(), found, expected, "map it, or choose another mode"))
    })
}

/// Checks that no start-up SDO sets another mode than that of the axis.
fn check_startup_mode(
    place: &Spanned<CyclicMode>,
    mode: CyclicMode,
    axis: &str,
    bus: &Bus,
    sub_device: usize,
) -> Checked<()> {
    let written = bus.sub_devices[sub_device].startup.iter().rfind(|sdo| sdo.index == MODES_OF_OPERATION);
    match written {
        Some(sdo) if sdo.data != [ModeOfOperation::from(mode).number() as u8] => {
            let found = format!("axis \"{axis}\" in mode {}", mode.name());
            let expected = format!("the mode that start-up writes to 0x6060 ({:?})", sdo.data);
            let remedy = "remove that start-up SDO: the axis sets its mode itself";
            Err(Problem::new(place.span(), found, expected, remedy))
        }
        _ => Ok(()),
    }
}
