//! What moves the axes, and whether the axes can follow.

use ethercat::cia402::CyclicMode;
use toml::Spanned;

use super::{Checked, number};
use crate::description::{Axis, Controller, Cycle, Sinusoid, short_name};
use crate::error::Problem;
use crate::file;
use crate::nearest::nearest;

pub(super) fn controller(
    controller: Option<&file::Controller>,
    axes: &[Axis],
    cycle: &Cycle,
) -> Checked<Controller> {
    let Some(controller) = controller else { return Ok(Controller::Hold) };
    check_axis_names(controller, axes)?;
    match controller.kind.get_ref() {
        file::ControllerKind::Hold => holding(controller),
        file::ControllerKind::Sinusoid => axes
            .iter()
            .enumerate()
            .map(|(number, axis)| sinusoid(controller, axis, number, cycle))
            .collect::<Checked<_>>()
            .map(Controller::Sinusoid),
    }
}

fn check_axis_names(controller: &file::Controller, axes: &[Axis]) -> Checked<()> {
    let unknown = controller.axis.keys().find(|name| axes.iter().all(|axis| axis.name != *name.get_ref()));
    unknown.map_or(Ok(()), |name| {
        let remedy = nearest(name.get_ref(), axes.iter().map(|axis| axis.name.as_str()))
            .map_or("correct the name".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("a movement for the unknown axis \"{}\"", name.get_ref());
        Err(Problem::new(name.span(), found, "the name of an [[axis]]", remedy))
    })
}

fn holding(controller: &file::Controller) -> Checked<Controller> {
    let given = [&controller.amplitude, &controller.frequency, &controller.phase, &controller.phase_step];
    match given.into_iter().flatten().next() {
        None => Ok(Controller::Hold),
        Some(value) => {
            let found = "a movement for a controller that holds still";
            Err(Problem::new(value.span(), found, "kind = \"sinusoid\"", "change kind or remove this"))
        }
    }
}

fn sinusoid(controller: &file::Controller, axis: &Axis, number: usize, cycle: &Cycle) -> Checked<Sinusoid> {
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

/// A torque is no position: what torque makes an axis swing is its load's affair.
fn check_mode(controller: &file::Controller, axis: &Axis) -> Checked<()> {
    if axis.mode != CyclicMode::Torque {
        return Ok(());
    }
    let found = format!("a swing for axis \"{}\" in mode {}", axis.name, short_name(axis.mode));
    let remedy = "choose another mode, or the controller \"hold\"";
    Err(Problem::new(controller.kind.span(), found, "mode csp or csv", remedy))
}

/// Whether the axis may move as fast as the sinusoid swings.
fn check_speed(sinusoid: &Sinusoid, axis: &Axis, place: &Spanned<f64>) -> Checked<()> {
    let speed = sinusoid.trajectory().maximum_velocity().0;
    if speed <= axis.limits.velocity {
        return Ok(());
    }
    let found = format!("a swing of axis \"{}\" at up to {speed:.3} rad/s", axis.name);
    let expected = format!("at most its velocity limit, {} rad/s", axis.limits.velocity);
    Err(Problem::new(place.span(), found, expected, "lower amplitude or frequency"))
}
