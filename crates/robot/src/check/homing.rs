//! Checks of homing: the way an axis learns its absolute position.

use ethercat::cia402::object::{MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY, of_axis};

use motion::PositionSense;
use motion::supervision::Limits;

use super::Checked;
use crate::error::Problem;
use crate::field::Number;
use crate::field::Place;
use crate::model::{ApplicationKind, Axis, Homing, HomingSettings, SubDevice};

/// Completes the settings, and returns the homing that they are for.
pub(super) fn homing(
    settings: Option<&mut HomingSettings>,
    limits: &Limits,
    entry: Place<'_>,
) -> Checked<Homing> {
    let Some(it) = settings else { return Ok(Homing::Never) };
    if it.method.is_some() {
        return by_drive(it, limits, entry);
    }
    let of_drives = ["switch_velocity", "zero_velocity", "acceleration", "time_out"];
    if let Some(key) = of_drives.into_iter().find(|key| entry.has(key)) {
        let found = format!("{key} without a method");
        let expected = "method = the homing method of the drive";
        return Err(Problem::new(entry.key(key), found, expected, "add it, or remove it"));
    }
    match (it.offset, it.position) {
        (Some(_), None) if it.required == Some(true) => {
            let found = "required = true and offset";
            let expected =
                "a homing to wait for: an absolute encoder with an offset is homed from the start";
            Err(Problem::new(entry.key("required"), found, expected, "remove required"))
        }
        (Some(offset), None) => Ok(Homing::Absolute { offset }),
        (None, Some(position)) => Ok(Homing::CurrentPosition { position }),
        (given, _) => {
            let found = if given.is_some() { "offset and position" } else { "neither offset nor position" };
            let expected = "offset of an absolute encoder, or position of a mark to be homed at";
            Err(Problem::new(entry, found, expected, "give one of the two"))
        }
    }
}

fn by_drive(it: &mut HomingSettings, limits: &Limits, entry: Place<'_>) -> Checked<Homing> {
    if it.offset.is_some() {
        let found = "offset and method";
        let expected = "offset of an absolute encoder, or method of a drive that finds its mark";
        return Err(Problem::new(entry.key("offset"), found, expected, "remove one of the two"));
    }
    let within = |key: &str, given: f64, usual: f64, limit: f64, of: &str| {
        if !entry.has(key) {
            return Ok(usual);
        }
        if given <= limit {
            return Ok(given);
        }
        let expected = format!("at most the {of} limit of the axis, {}", Number(limit));
        Err(Problem::new(
            entry.key(key),
            format!("{key} = {}", Number(given)),
            expected,
            format!("lower {key}"),
        ))
    };
    let (velocity, most) = (limits.velocity.0, limits.acceleration.0);
    let usual = velocity * SLOW;
    it.switch_velocity.0 = within("switch_velocity", it.switch_velocity.0, usual, velocity, "velocity")?;
    let usual = it.switch_velocity.0 * SLOW;
    it.zero_velocity.0 = within("zero_velocity", it.zero_velocity.0, usual, velocity, "velocity")?;
    it.acceleration.0 = within("acceleration", it.acceleration.0, most, most, "acceleration")?;
    Ok(Homing::Drive { position: it.position.unwrap_or_default(), timeout: it.time_out })
}

/// True if no controller may move the axis before it is homed: as the file says; else where it has
/// position limits, an encoder that is not absolute, and a homing by request.
pub(super) fn is_required(axis: &Axis, sense: &PositionSense) -> bool {
    let by_request = matches!(axis.homing, Homing::CurrentPosition { .. } | Homing::Drive { .. });
    let usual = by_request && axis.limits.position.is_some() && sense.range.is_none();
    axis.homing_settings.map_or(usual, |it| it.required.unwrap_or(usual))
}

/// Checks that the drive can be commanded to home from within the cycle, and that a simulated one
/// knows the method.
pub(super) fn check_drive(
    method: i8,
    axis: &Axis,
    sub_device: &SubDevice,
    entry: Place<'_>,
) -> Checked<()> {
    let place = entry.key("method");
    let name = &sub_device.name;
    if let Some(mapping) = sub_device.explicit_mapping() {
        let [mode, shown] =
            [MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY].map(|index| of_axis(index, axis.drive_axis));
        let missing =
            [(mode, "outputs", mapping.output(mode, 0)), (shown, "inputs", mapping.input(shown, 0))];
        if let Some((index, direction, _)) = missing.into_iter().find(|(.., field)| field.is_none()) {
            let found = format!("axis \"{}\" homed by its drive without object {index:#06x}", axis.name);
            let expected = format!(
                "it among the {direction} of \"{name}\": the cycle changes the mode, and sends no SDO"
            );
            return Err(Problem::new(place, found, expected, "map it (8 bits)"));
        }
    }
    let drive = sub_device.simulation.as_ref().filter(|it| it.application == ApplicationKind::ServoDrive);
    let Some(drive) = drive else { return Ok(()) };
    let (switches, there, key) = match method {
        1 | 2 | 17 | 18 => {
            ("limit switches", drive.limit_switches.is_some(), "limit_switches = [LOWEST, HIGHEST]")
        }
        3..=14 | 19..=30 => ("a home switch", drive.home_switch.is_some(), "home_switch = [FIRST, LAST]"),
        _ => return Ok(()),
    };
    if !there {
        let found = format!("method {method} for the simulated drive \"{name}\" without {switches}");
        let expected = format!("{key} in its simulate");
        return Err(Problem::new(place, found, expected, "add it"));
    }
    Ok(())
}

/// Default homing speeds: this share of the highest speed towards a switch, and this share of that
/// towards the mark.
const SLOW: f64 = 0.1;
