//! Checks of the swing of axes, and of their ability to follow it.

use crate::check::Checked;
use crate::error::Problem;
use crate::field::Number;
use crate::field::Place;
use crate::model::{Axis, AxisSwing, Controller, Cycle, Sinusoid};

/// Swing of `axis`, the `number`th that swings.
pub(super) fn sinusoid(
    controller: &Controller,
    axis: &Axis,
    number: usize,
    cycle: &Cycle,
    entry: Place<'_>,
) -> Checked<Sinusoid> {
    let own = controller.swing_of.get(&axis.name).cloned().unwrap_or_default();
    let AxisSwing { amplitude, frequency, phase } = own;
    let missing = |key: &str| {
        let found = format!("no {key} for axis \"{}\"", axis.name);
        Problem::new(entry.key("kind"), found, format!("{key} in [controller]"), "add it")
    };
    let of_axis = entry.key("axis").key(&axis.name);
    let place = if amplitude.is_some() { of_axis } else { entry }.key("amplitude");
    let amplitude = amplitude.or(controller.amplitude).ok_or_else(|| missing("amplitude"))?;
    let frequency = frequency.or(controller.frequency).ok_or_else(|| missing("frequency"))?;
    let phase = phase.unwrap_or(controller.phase + controller.phase_step * number as f64);
    let sinusoid = Sinusoid::new(amplitude, frequency, phase)
        .map_err(|error| Problem::new(place, error.to_string(), "a swing of a real axis", "correct it"))?;
    check_speed(&sinusoid, axis, place)?;
    check_acceleration(&sinusoid, axis, place)?;
    check_jerk(&sinusoid, axis, place)?;
    if frequency * cycle.period.as_secs_f64() > 0.1 {
        let found = format!("a swing of axis \"{}\" at {} Hz", axis.name, Number(frequency));
        let expected = "at least ten periods a swing";
        return Err(Problem::new(place, found, expected, "lower frequency or period"));
    }
    Ok(sinusoid)
}

/// Checks that the sinusoid does not exceed the velocity limit of the axis.
fn check_speed(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let speed = sinusoid.trajectory().maximum_velocity().0;
    if speed <= axis.limits.velocity.0 {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" at up to {:.3} rad/s", axis.name, Number(speed));
    let expected = format!("at most its velocity limit, {} rad/s", Number(axis.limits.velocity.0));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}

/// Checks that the sinusoid does not exceed the acceleration limit of the axis, where that is
/// written: it would be clamped.
fn check_acceleration(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let (found, limit) = (sinusoid.trajectory().maximum_acceleration().0, axis.limits.acceleration.0);
    if found <= limit || !axis.limits.written.acceleration {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" with up to {:.3} rad/s\u{b2}", axis.name, Number(found));
    let expected = format!("at most its acceleration limit, {} rad/s\u{b2}", Number(limit));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}

/// Checks that the sinusoid does not exceed the jerk limit of the axis, where that is written: it
/// would be clamped.
fn check_jerk(sinusoid: &Sinusoid, axis: &Axis, place: Place<'_>) -> Checked<()> {
    let (found, limit) = (sinusoid.trajectory().maximum_jerk().0, axis.limits.jerk.0);
    if found <= limit || !axis.limits.written.jerk {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" with up to {:.3} rad/s\u{b3}", axis.name, Number(found));
    let expected = format!("at most its jerk limit, {} rad/s\u{b3}", Number(limit));
    Err(Problem::new(place, found, expected, "lower amplitude or frequency"))
}
