//! Checks of an axis's encoder: its knowledge of the position after its drive was without power.

use std::f64::consts::TAU;

use ethercat::main_device::LONGEST_WATCHDOG;
use motion::{PositionSense, Radians, Seconds};

use super::Checked;
use crate::error::Problem;
use crate::field::Number;
use crate::field::Place;
use crate::model::{Axis, Cycle, Encoder, EncoderSide, ResetFaults, SubDevice};

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
