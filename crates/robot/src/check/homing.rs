//! Checks of homing: the way an axis learns its absolute position.
//!
//! Checks of an axis's encoder: its knowledge of the position after its drive was without power.

use std::f64::consts::TAU;

use ethercat::cia402::object::{MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY, of_axis};
use ethercat::main_device::LONGEST_WATCHDOG;
use motion::homing::Homing;
use motion::supervision::Limits;
use motion::{PositionSense, Radians, Seconds};

use super::Checked;
use crate::error::Problem;
use crate::field::{Number, Place};
use crate::model::{
    ApplicationKind, Axis, Cycle, Encoder, EncoderSide, HomingSettings, ResetFaults, SubDevice,
};

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

/// Checks the memory of its position over restarts of Onbeat.
pub(super) fn check_memory(axis: &Axis, cycle: &Cycle, entry: Place<'_>) -> Checked<()> {
    let has_limits = axis.limits.position.is_some();
    let problem = |key, found: &str, expected: &str, remedy: &str| {
        Err(Problem::new(entry.key(key), found.to_owned(), expected.to_owned(), remedy))
    };
    if axis.position_memory && !has_limits {
        let found = "position_memory = true without position limits";
        return problem(
            "position_memory",
            found,
            "an axis with limits.position",
            "add the limits, or remove it",
        );
    }
    if cycle.reset_faults != ResetFaults::None && has_limits && !axis.position_memory {
        let found = "limits.position without position_memory, and reset_faults in [cycle]";
        let remedy = "add position_memory = true to the axis, or remove reset_faults";
        return problem("limits", found, "position_memory of each axis with limits.position", remedy);
    }
    Ok(())
}

/// Checks that an axis with a memory can become referenced: it is unreferenced at its first start.
pub(super) fn check_way_back(axis: &Axis, sense: &PositionSense, entry: Place<'_>) -> Checked<()> {
    if !axis.position_memory || sense.has_way_back() {
        return Ok(());
    }
    let found = "position_memory with an encoder that is not absolute, and no homing on a switch";
    let expected = "a way to reference the axis";
    let remedy = "add a homing method with a switch, name an absolute encoder, or remove position_memory";
    Err(Problem::new(entry.key("position_memory"), found.to_owned(), expected.to_owned(), remedy))
}

/// Knowledge of the position after a restart of `drive`.
pub(super) fn position_sense(axis: &Axis, drive: &SubDevice, entry: Place<'_>) -> Checked<PositionSense> {
    let motor = Radians(TAU / axis.gear_ratio.abs());
    let revolution = match axis.encoder_side {
        EncoderSide::Motor => motor,
        EncoderSide::Load => Radians(TAU),
    };
    let watchdog = drive.process_data_watchdog.time().unwrap_or(LONGEST_WATCHDOG);
    Ok(PositionSense {
        range: turns(axis, entry)?.map(|turns| revolution * turns),
        coast: axis.coast,
        tolerance: axis.position_tolerance.unwrap_or_else(|| PositionSense::usual_tolerance(motor)),
        watchdog: Seconds(watchdog.as_secs_f64()),
        homes_on_a_switch: homes_on_a_switch(axis, revolution),
    })
}

/// Revolutions over which the encoder knows the position without power.
fn turns(axis: &Axis, entry: Place<'_>) -> Checked<Option<f64>> {
    let key = entry.key("encoder_range");
    let refused = |found: String, expected: &str, remedy: &str| {
        Err(Problem::new(key, found, expected.to_owned(), remedy.to_owned()))
    };
    match (axis.encoder, axis.encoder_range) {
        (Some(Encoder::MultiTurn), Some(turns)) => Ok(Some(turns)),
        (Some(Encoder::MultiTurn), None) => {
            let found = "encoder = \"multi_turn\" without encoder_range".to_owned();
            let expected = "encoder_range = the revolutions that it distinguishes, as 4096";
            Err(Problem::new(
                entry.key("encoder"),
                found,
                expected,
                "add it; the encoder's data sheet has it",
            ))
        }
        (Some(Encoder::SingleTurn), None | Some(1.0)) => Ok(Some(1.0)),
        (Some(Encoder::SingleTurn), Some(turns)) => {
            let found = format!("encoder = \"single_turn\" and encoder_range = {}", Number(turns));
            refused(found, "a range of 1 revolution", "leave encoder_range out, or correct encoder")
        }
        (Some(Encoder::Incremental) | None, None) => Ok(None),
        (Some(Encoder::Incremental) | None, Some(turns)) => {
            let found = format!("encoder_range = {} of an encoder that is not absolute", Number(turns));
            let expected = "encoder = \"single_turn\" or \"multi_turn\"";
            refused(found, expected, "correct encoder, or remove encoder_range")
        }
    }
}

/// True if its homing looks for a switch, or for an index of which only one lies within the limits.
/// Methods 35 and 37 take the actual position.
fn homes_on_a_switch(axis: &Axis, revolution: Radians) -> bool {
    let one_index = || axis.limits.position.is_some_and(|(lowest, highest)| highest - lowest < revolution);
    match axis.homing_settings.and_then(|it| it.method) {
        Some(1..=14 | 17..=30) => true,
        Some(33 | 34) => one_index(),
        _ => false,
    }
}
