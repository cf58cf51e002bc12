//! Checks of the simulation of SubDevices.

use std::ops::Range;

use toml::Spanned;

use super::{Checked, number};
use crate::error::Problem;
use crate::file::{self, SimulateKind, SimulatedSource};
use crate::model::{AnalogueSource, Application, EncoderSource, ServoDrivePlant, Simulation, SubDevice};
use crate::nearest::nearest;

pub(super) fn simulation(simulate: &Spanned<file::Simulate>) -> Checked<Simulation> {
    let it = simulate.get_ref();
    misplaced(it)?;
    let application = match it.kind {
        SimulateKind::Coupler => Application::Coupler,
        SimulateKind::DigitalOutputs => Application::DigitalOutputs { channels: channels(simulate, 64)? },
        SimulateKind::DigitalInputs => Application::DigitalInputs { channels: channels(simulate, 64)? },
        SimulateKind::AnalogueInput => {
            Application::AnalogueInput { channels: channels(simulate, 16)?, source: analogue_source(it)? }
        }
        SimulateKind::AnalogueOutput => Application::AnalogueOutput { channels: channels(simulate, 16)? },
        SimulateKind::Encoder => {
            Application::Encoder { channels: channels(simulate, 2)?, source: encoder_source(it)? }
        }
        SimulateKind::ForceTorqueSensor => Application::ForceTorqueSensor {
            amplitude: optional("amplitude", &it.amplitude, number::finite)?.unwrap_or(10.0),
            frequency: optional("frequency", &it.frequency, number::not_negative)?.unwrap_or(0.5),
        },
        SimulateKind::ServoDrive => Application::ServoDrive(plant(it)?),
    };
    Ok(Simulation { application, sii: it.sii.clone() })
}

/// Checks that no key belongs to another kind of application.
fn misplaced(it: &file::Simulate) -> Checked<()> {
    use SimulateKind::{AnalogueInput, Coupler, Encoder, ForceTorqueSensor, ServoDrive};
    let drive: (&[SimulateKind], _) = (&[ServoDrive], "a servo_drive");
    let signals: (&[SimulateKind], _) =
        (&[AnalogueInput, ForceTorqueSensor], "an analogue_input or a force_torque_sensor");
    let analogue: (&[SimulateKind], _) = (&[AnalogueInput], "an analogue_input");
    let encoder: (&[SimulateKind], _) = (&[Encoder], "an encoder");
    let keys = [
        (
            "encoder_counts",
            span(&it.encoder_counts),
            (&[ServoDrive, Encoder][..], "a servo_drive or an encoder"),
        ),
        ("inertia", span(&it.inertia), drive),
        ("viscous_friction", span(&it.viscous_friction), drive),
        ("coulomb_friction", span(&it.coulomb_friction), drive),
        ("rated_torque", span(&it.rated_torque), drive),
        ("torque_limit", span(&it.torque_limit), drive),
        ("limit_switches", span(&it.limit_switches), drive),
        ("source", span(&it.source), analogue),
        ("offset", span(&it.offset), analogue),
        ("amplitude", span(&it.amplitude), signals),
        ("frequency", span(&it.frequency), signals),
        ("rate", span(&it.rate), encoder),
        ("follows", span(&it.follows), encoder),
    ];
    let wrong = |key: &str, place, belongs| {
        let found = format!("{key} for another kind of application");
        Err(Problem::new(place, found, format!("{key} only beside {belongs}"), "remove it"))
    };
    if let (Some(place), Coupler | ServoDrive | ForceTorqueSensor) = (span(&it.channels), it.kind) {
        return wrong("channels", place, "digital or analogue channels, or encoders");
    }
    for (key, place, (kinds, belongs)) in keys {
        if let Some(place) = place.filter(|_| !kinds.contains(&it.kind)) {
            return wrong(key, place, belongs);
        }
    }
    Ok(())
}

fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
    value.as_ref().map(Spanned::span)
}

fn optional(
    key: &str,
    value: &Option<Spanned<f64>>,
    check: fn(&str, &Spanned<f64>) -> Checked<f64>,
) -> Checked<Option<f64>> {
    value.as_ref().map(|value| check(key, value)).transpose()
}

/// Measured quantity, by default a sine of half of full scale.
fn analogue_source(it: &file::Simulate) -> Checked<AnalogueSource> {
    let source = it.source.as_ref().map(|source| *source.get_ref());
    if source == Some(SimulatedSource::Outputs) {
        let keys = [("amplitude", &it.amplitude), ("frequency", &it.frequency), ("offset", &it.offset)];
        return match keys.into_iter().find_map(|(key, value)| Some((key, span(value)?))) {
            None => Ok(AnalogueSource::Outputs),
            Some((key, place)) => {
                let found = format!("{key} beside source = \"outputs\"");
                let expected = format!("{key} only with source = \"sine\" or \"ramp\"");
                Err(Problem::new(place, found, expected, "remove one of the two"))
            }
        };
    }
    Ok(AnalogueSource::Course {
        ramp: source == Some(SimulatedSource::Ramp),
        offset: optional("offset", &it.offset, number::finite)?.unwrap_or(0.0),
        amplitude: optional("amplitude", &it.amplitude, number::finite)?.unwrap_or(16_384.0),
        frequency: optional("frequency", &it.frequency, number::not_negative)?.unwrap_or(1.0),
    })
}

/// Counted quantity, by default 1000 counts a second.
fn encoder_source(it: &file::Simulate) -> Checked<EncoderSource> {
    let counts =
        number::optional_whole("encoder_counts", it.encoder_counts.as_ref(), 1..=i64::from(u32::MAX))?;
    match (&it.follows, &it.rate, &it.encoder_counts) {
        (Some(follows), Some(rate), _) => {
            let found = format!("rate beside follows = \"{}\"", follows.get_ref());
            let expected = "counts of its own, or those of a shaft";
            Err(Problem::new(rate.span(), found, expected, "remove one of the two"))
        }
        (Some(follows), None, _) => Ok(EncoderSource::Shaft {
            sub_device: follows.get_ref().clone(),
            counts: counts.map_or(4096, |counts| counts as u32),
        }),
        (None, _, Some(counts)) => {
            let found = "encoder_counts of an encoder that follows no shaft";
            Err(Problem::new(counts.span(), found, "rate, or encoder_counts with follows", "add follows"))
        }
        (None, rate, None) => {
            Ok(EncoderSource::Rate(optional("rate", rate, number::finite)?.unwrap_or(1000.0)))
        }
    }
}

/// Checks that an encoder follows the shaft of a simulated servo drive.
pub(super) fn follows(simulate: &Spanned<file::Simulate>, bus: &[SubDevice]) -> Checked<()> {
    let Some(follows) = &simulate.get_ref().follows else { return Ok(()) };
    let drives = || {
        let is_drive = |it: &&SubDevice| {
            let application = it.simulation.as_ref().map(|simulation| &simulation.application);
            matches!(application, Some(Application::ServoDrive(_)))
        };
        bus.iter().filter(is_drive).map(|it| it.name.as_str())
    };
    let wanted = follows.get_ref();
    if drives().any(|name| name == wanted) {
        return Ok(());
    }
    let remedy = nearest(wanted, drives())
        .map_or("correct follows".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
    let found = format!("follows = \"{wanted}\"");
    Err(Problem::new(follows.span(), found, "the name of a SubDevice simulated as servo_drive", remedy))
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
