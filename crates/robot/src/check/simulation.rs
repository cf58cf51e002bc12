//! Checks of the simulation of SubDevices.

use toml::Spanned;

use super::{Checked, number};
use crate::description::{Application, ServoDrivePlant, Simulation};
use crate::error::Problem;
use crate::file;

pub(super) fn simulation(simulate: &Spanned<file::Simulate>) -> Checked<Simulation> {
    use file::SimulateKind;
    let it = simulate.get_ref();
    let drives_only = [
        ("encoder_counts", it.encoder_counts.as_ref().map(Spanned::span)),
        ("inertia", it.inertia.as_ref().map(Spanned::span)),
        ("viscous_friction", it.viscous_friction.as_ref().map(Spanned::span)),
        ("coulomb_friction", it.coulomb_friction.as_ref().map(Spanned::span)),
        ("rated_torque", it.rated_torque.as_ref().map(Spanned::span)),
        ("torque_limit", it.torque_limit.as_ref().map(Spanned::span)),
        ("limit_switches", it.limit_switches.as_ref().map(Spanned::span)),
    ];
    let channels_only = [("channels", it.channels.as_ref().map(Spanned::span))];
    let (has_channels, is_drive) = match it.kind {
        SimulateKind::Coupler => (false, false),
        SimulateKind::ServoDrive => (false, true),
        _ => (true, false),
    };
    let misplaced = drives_only.into_iter().filter(|_| !is_drive);
    let misplaced = misplaced.chain(channels_only.into_iter().filter(|_| !has_channels));
    if let Some((key, span)) = misplaced.filter_map(|(key, span)| span.map(|span| (key, span))).next() {
        let belongs = if key == "channels" { "digital or analogue channels" } else { "a servo_drive" };
        let found = format!("{key} for another kind of application");
        return Err(Problem::new(span, found, format!("{key} only beside {belongs}"), "remove it"));
    }
    let application = match it.kind {
        SimulateKind::Coupler => Application::Coupler,
        SimulateKind::DigitalOutputs => Application::DigitalOutputs { channels: channels(simulate, 64)? },
        SimulateKind::DigitalInputs => Application::DigitalInputs { channels: channels(simulate, 64)? },
        SimulateKind::AnalogueInput => Application::AnalogueInput { channels: channels(simulate, 16)? },
        SimulateKind::ServoDrive => Application::ServoDrive(plant(it)?),
    };
    Ok(Simulation { application, sii: it.sii.clone() })
}

fn channels(simulate: &Spanned<file::Simulate>, most: i64) -> Checked<u8> {
    match &simulate.get_ref().channels {
        Some(channels) => number::whole("channels", channels, 1..=most).map(|channels| channels as u8),
        None => {
            let found = "a simulated terminal without channels";
            Err(Problem::new(simulate.span(), found, format!("channels = 1 to {most}"), "add channels"))
        }
    }
}

/// Plant of the file, by default a motor of about 750 W with its load.
fn plant(simulate: &file::Simulate) -> Checked<ServoDrivePlant> {
    let or = |value: &Option<Spanned<f64>>,
              check: fn(&str, &Spanned<f64>) -> Checked<f64>,
              key,
              default| { value.as_ref().map_or(Ok(default), |value| check(key, value)) };
    let counts = &simulate.encoder_counts;
    let counts = number::optional_whole("encoder_counts", counts.as_ref(), 1..=i64::from(u32::MAX))?;
    let rated_torque = or(&simulate.rated_torque, number::positive, "rated_torque", 2.4)?;
    Ok(ServoDrivePlant {
        encoder_counts: counts.map_or(1 << 20, |counts| counts as u32),
        inertia: or(&simulate.inertia, number::positive, "inertia", 5e-4)?,
        viscous_friction: or(&simulate.viscous_friction, number::not_negative, "viscous_friction", 1e-3)?,
        coulomb_friction: or(&simulate.coulomb_friction, number::not_negative, "coulomb_friction", 0.02)?,
        rated_torque,
        torque_limit: or(&simulate.torque_limit, number::positive, "torque_limit", 3.0 * rated_torque)?,
        limit_switches: simulate.limit_switches.as_ref().map(limit_switches).transpose()?,
    })
}

/// Checks that the shaft is between the switches at the start.
fn limit_switches(switches: &Spanned<[f64; 2]>) -> Checked<(f64, f64)> {
    let [lowest, highest] = *switches.get_ref();
    if lowest.is_finite() && highest.is_finite() && lowest < 0.0 && highest > 0.0 {
        return Ok((lowest, highest));
    }
    let found = format!("limit_switches = [{lowest}, {highest}]");
    let expected = "an angle below 0 and one above 0, in rad: the shaft starts at 0";
    Err(Problem::new(switches.span(), found, expected, "correct limit_switches"))
}
