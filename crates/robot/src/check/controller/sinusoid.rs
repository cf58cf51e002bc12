//! Checks of the swing of axes, and of their ability to follow it.

use ethercat::cia402::CyclicMode;
use toml::Spanned;

use crate::check::{Checked, number};
use crate::error::Problem;
use crate::file;
use crate::model::{Axis, Cycle, Sinusoid};

/// Swing of `axis`, the `number`th that swings.
pub(super) fn sinusoid(
    controller: &file::Controller,
    axis: &Axis,
    number: usize,
    cycle: &Cycle,
) -> Checked<Sinusoid> {
    let own = controller.axis.iter().find(|(name, _)| *name.get_ref() == axis.name).map(|(_, own)| own);
    let own = own.cloned().unwrap_or_default();
    let amplitude = own.amplitude.as_ref().or(controller.amplitude.as_ref());
    let frequency = own.frequency.as_ref().or(controller.frequency.as_ref());
    let missing = |key: &str| {
        let found = format!("no {key} for axis \"{}\"", axis.name);
        Problem::new(controller.kind.span(), found, format!("{key} in [controller]"), "add it")
    };
    let amplitude_place = amplitude.ok_or_else(|| missing("amplitude"))?;
    let amplitude = number::not_negative("amplitude", amplitude_place)?;
    let frequency = number::not_negative("frequency", frequency.ok_or_else(|| missing("frequency"))?)?;
    let value =
        |value: Option<&Spanned<f64>>, key| value.map_or(Ok(0.0), |it| number::not_negative(key, it));
    let phase = match &own.phase {
        Some(phase) => number::not_negative("phase", phase)?,
        None => {
            let step = value(controller.phase_step.as_ref(), "phase_step")?;
            value(controller.phase.as_ref(), "phase")? + step * number as f64
        }
    };
    let sinusoid = Sinusoid::new(amplitude, frequency, phase).map_err(|error| {
        Problem::new(amplitude_place.span(), error.to_string(), "a swing of a real axis", "correct it")
    })?;
    check_mode(controller, axis)?;
    check_speed(&sinusoid, axis, amplitude_place)?;
    if frequency * cycle.period.as_secs_f64() > 0.1 {
        let found = format!("a swing of axis \"{}\" at {frequency} Hz", axis.name);
        let expected = "at least ten periods a swing";
        return Err(Problem::new(amplitude_place.span(), found, expected, "lower frequency or period"));
    }
    Ok(sinusoid)
}

/// Refuses torque mode: the torque that makes an axis swing depends on its load.
fn check_mode(controller: &file::Controller, axis: &Axis) -> Checked<()> {
    if axis.mode != CyclicMode::Torque {
        return Ok(());
    }
    let found = format!("a swing for axis \"{}\" in mode {}", axis.name, axis.mode.name());
    let remedy = "choose another mode, or the controller \"hold\"";
    Err(Problem::new(controller.kind.span(), found, "mode csp or csv", remedy))
}

/// Checks that the sinusoid does not exceed the velocity limit of the axis.
fn check_speed(sinusoid: &Sinusoid, axis: &Axis, place: &Spanned<f64>) -> Checked<()> {
    let speed = sinusoid.trajectory().maximum_velocity().0;
    if speed <= axis.limits.velocity.0 {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" at up to {speed:.3} rad/s", axis.name);
    let expected = format!("at most its velocity limit, {} rad/s", axis.limits.velocity.0);
    Err(Problem::new(place.span(), found, expected, "lower amplitude or frequency"))
}
