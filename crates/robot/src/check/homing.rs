//! Checks of homing: the way an axis learns its absolute position.

use std::ops::Range;
use std::time::Duration;

use ethercat::cia402::object::{MODES_OF_OPERATION, MODES_OF_OPERATION_DISPLAY};
use toml::Spanned;

use super::{Checked, number, time_within};
use motion::supervision::Limits;

use crate::error::Problem;
use crate::file;
use crate::model::{Application, DriveHoming, Homing, SubDevice};

pub(super) fn homing(entry: &Spanned<file::Homing>, limits: &Limits) -> Checked<Homing> {
    let homing = entry.get_ref();
    if let Some(method) = &homing.method {
        return by_drive(homing, method, limits).map(Homing::Drive);
    }
    if let Some((key, span)) = drives_keys(homing).into_iter().find_map(|(key, span)| Some((key, span?))) {
        let found = format!("{key} without a method");
        return Err(Problem::new(
            span,
            found,
            "method = the homing method of the drive",
            "add it, or remove it",
        ));
    }
    match (&homing.offset, &homing.position) {
        (Some(offset), None) => Ok(Homing::Absolute { offset: number::finite("offset", offset)? }),
        (None, Some(position)) => {
            Ok(Homing::CurrentPosition { position: number::finite("position", position)? })
        }
        (given, _) => {
            let found = if given.is_some() { "offset and position" } else { "neither offset nor position" };
            let expected = "offset of an absolute encoder, or position of a mark to be homed at";
            Err(Problem::new(entry.span(), found, expected, "give one of the two"))
        }
    }
}

fn by_drive(homing: &file::Homing, method: &Spanned<i64>, limits: &Limits) -> Checked<DriveHoming> {
    if let Some(offset) = &homing.offset {
        let found = "offset and method";
        let expected = "offset of an absolute encoder, or method of a drive that finds its mark";
        return Err(Problem::new(offset.span(), found, expected, "remove one of the two"));
    }
    let number = *method.get_ref();
    if !METHODS.iter().any(|methods| methods.contains(&number)) {
        let expected = "a homing method of CiA 402: 1 to 14, 17 to 30, 33 to 35, or 37";
        return Err(Problem::new(method.span(), format!("method = {number}"), expected, "correct method"));
    }
    let within = |key: &str, value: &Option<Spanned<f64>>, usual: f64, limit: f64, of: &str| {
        let Some(value) = value else { return Ok(usual) };
        let given = number::positive(key, value)?;
        if given <= limit {
            return Ok(given);
        }
        let expected = format!("at most the {of} limit of the axis, {limit}");
        Err(Problem::new(value.span(), format!("{key} = {given}"), expected, format!("lower {key}")))
    };
    let (velocity, acceleration) = (limits.velocity.0, limits.deceleration.0);
    let switch_velocity =
        within("switch_velocity", &homing.switch_velocity, velocity * SLOW, velocity, "velocity")?;
    let usual = switch_velocity * SLOW;
    Ok(DriveHoming {
        method: number as i8,
        position: homing.position.as_ref().map_or(Ok(0.0), |it| number::finite("position", it))?,
        switch_velocity,
        zero_velocity: within("zero_velocity", &homing.zero_velocity, usual, velocity, "velocity")?,
        acceleration: within(
            "acceleration",
            &homing.acceleration,
            acceleration,
            acceleration,
            "acceleration",
        )?,
        time_out: match &homing.time_out {
            None => USUAL_TIME_OUT,
            Some(length) => {
                let range = Duration::from_millis(100)..=LONGEST_TIME_OUT;
                time_within("time_out", length, range, "correct time_out")?
            }
        },
    })
}

/// Keys of a drive's own homing.
fn drives_keys(homing: &file::Homing) -> [(&'static str, Option<Range<usize>>); 4] {
    [
        ("switch_velocity", homing.switch_velocity.as_ref().map(Spanned::span)),
        ("zero_velocity", homing.zero_velocity.as_ref().map(Spanned::span)),
        ("acceleration", homing.acceleration.as_ref().map(Spanned::span)),
        ("time_out", homing.time_out.as_ref().map(Spanned::span)),
    ]
}

/// Checks that the drive can be told to home from within the cycle, and that a simulated one knows the
/// method.
pub(super) fn check_drive(
    entry: &Spanned<file::Homing>,
    homing: &DriveHoming,
    axis: &str,
    sub_device: &SubDevice,
) -> Checked<()> {
    let place = entry.get_ref().method.as_ref().map_or(entry.span(), Spanned::span);
    let name = &sub_device.name;
    if let Some(mapping) = sub_device.explicit_mapping() {
        let missing = [
            (MODES_OF_OPERATION, "outputs", mapping.output(MODES_OF_OPERATION, 0)),
            (MODES_OF_OPERATION_DISPLAY, "inputs", mapping.input(MODES_OF_OPERATION_DISPLAY, 0)),
        ];
        if let Some((index, direction, _)) = missing.into_iter().find(|(.., field)| field.is_none()) {
            let found = format!("axis \"{axis}\" homed by its drive without object {index:#06x}");
            let expected = format!(
                "it among the {direction} of \"{name}\": the cycle changes the mode, and sends no SDO"
            );
            return Err(Problem::new(place, found, expected, "map it (8 bits)"));
        }
    }
    let Some(Application::ServoDrive(plant)) = sub_device.simulation.as_ref().map(|it| &it.application)
    else {
        return Ok(());
    };
    if !SIMULATED_METHODS.contains(&homing.method) {
        let found = format!("method {} for the simulated drive \"{name}\"", homing.method);
        let expected = format!("one of those that it knows: {SIMULATED_METHODS:?}");
        return Err(Problem::new(place, found, expected, "choose one, or do not simulate it"));
    }
    if matches!(homing.method, 17 | 18) && plant.limit_switches.is_none() {
        let found =
            format!("method {} for the simulated drive \"{name}\" without limit switches", homing.method);
        let expected = "limit_switches = [LOWEST, HIGHEST] in its simulate";
        return Err(Problem::new(place, found, expected, "add them"));
    }
    Ok(())
}

/// Methods that CiA 402 defines.
const METHODS: [std::ops::RangeInclusive<i64>; 4] = [1..=14, 17..=30, 33..=35, 37..=37];

/// Methods of the simulated servo drive.
const SIMULATED_METHODS: [i8; 6] = [17, 18, 33, 34, 35, 37];

/// Default homing speeds: this share of the highest speed towards a switch, and this share of that towards
/// the mark.
const SLOW: f64 = 0.1;

const USUAL_TIME_OUT: Duration = Duration::from_secs(30);

const LONGEST_TIME_OUT: Duration = Duration::from_secs(600);
