//! Checks of the simulation of SubDevices.

use std::time::Duration;

use types::TerminalModel;
use types::duration;

use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::field::Place;
use crate::model::ApplicationKind::{
    AnalogueInput, AnalogueOutput, Coupler, DigitalInputs, DigitalOutputs, Encoder, ForceTorqueSensor,
    SerialLines, ServoDrive,
};
use crate::model::{AnalogueSource, ApplicationKind, Kind, Simulation, SubDevice};

/// Checks a simulation, and completes it with the values that are usual for its kind.
pub(super) fn simulation(it: &mut Simulation, entry: Place<'_>) -> Checked<()> {
    match it.kind {
        Kind::Behaviour(application) => {
            it.application = application;
            misplaced(application, entry)?;
            if let Some(most) = most_channels(application) {
                channels(it.channels, most, entry)?;
            }
        }
        Kind::Model(model) => {
            let (application, channels) = model.behaviour();
            misplaced(application, entry)?;
            built(entry)?;
            (it.application, it.terminal, it.channels) = (application, Some(model), channels);
        }
    }
    match it.application {
        AnalogueInput if it.source == AnalogueSource::Outputs => beside_outputs(entry)?,
        Encoder => encoder(it, entry)?,
        DigitalInputs => initial(it, entry)?,
        _ => {}
    }
    let (amplitude, frequency) =
        if it.application == AnalogueInput { (16_384.0, 1.0) } else { (10.0, 0.5) };
    let counts = if it.application == Encoder { 4096 } else { 1 << 20 };
    for (key, value, usual) in [
        ("amplitude", &mut it.amplitude, amplitude),
        ("frequency", &mut it.frequency, frequency),
        ("torque_limit", &mut it.torque_limit, 3.0 * it.rated_torque),
    ] {
        if !entry.has(key) {
            *value = usual;
        }
    }
    if !entry.has("encoder_counts") {
        it.encoder_counts = counts;
    }
    Ok(())
}

const fn most_channels(application: ApplicationKind) -> Option<u8> {
    match application {
        DigitalOutputs | DigitalInputs => Some(64),
        AnalogueInput | AnalogueOutput => Some(16),
        Encoder => Some(2),
        Coupler | ForceTorqueSensor | SerialLines | ServoDrive => None,
    }
}

/// Checks that nothing else says how a terminal of a model is built.
fn built(entry: Place<'_>) -> Checked<()> {
    let Some(key) = ["channels", "sii"].into_iter().find(|key| entry.has(key)) else { return Ok(()) };
    let found = format!("{key} of a terminal with a model as its kind");
    Err(Problem::new(entry.key(key), found, "a terminal as it is built", "remove it"))
}

/// Shortest time from one sample of a simulated oversampling terminal to the next.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(10);

/// Checks that a simulated oversampling terminal knows when to sample, and not too often.
pub(super) fn samples(it: &SubDevice, place: Place<'_>) -> Checked<()> {
    let model = it.simulation.as_ref().and_then(|simulation| simulation.terminal);
    let Some(model @ (TerminalModel::El3702 | TerminalModel::El4732)) = model else { return Ok(()) };
    let (Some(sync0), Some(_)) = (it.sync0, it.sync1) else {
        let found = format!("a simulated {} without SYNC1", model.name());
        let expected = "dc = { oversampling = 10 } or the like: SYNC0 samples, SYNC1 hands over";
        return Err(Problem::new(place.key("simulate"), found, expected, "add dc"));
    };
    if sync0.cycle >= SHORTEST_SAMPLE {
        return Ok(());
    }
    let found = format!("a sample every {} of a simulated {}", duration::format(sync0.cycle), model.name());
    Err(Problem::new(place.key("dc"), found, "10us at least", "lower oversampling"))
}

fn channels(channels: u8, most: u8, entry: Place<'_>) -> Checked<()> {
    if !entry.has("channels") {
        let found = "a simulated terminal without channels";
        return Err(Problem::new(entry, found, format!("channels = 1 to {most}"), "add channels"));
    }
    if channels <= most {
        return Ok(());
    }
    let (found, expected) = (format!("channels = {channels}"), format!("1 to {most}"));
    Err(Problem::new(entry.key("channels"), found, expected, "correct channels"))
}

/// Checks that each level from the start belongs to a digital input that can be set.
fn initial(it: &Simulation, entry: Place<'_>) -> Checked<()> {
    let most = if it.terminal == Some(TerminalModel::El1252) { 0 } else { usize::from(it.channels) };
    if it.initial.len() <= most {
        return Ok(());
    }
    let found = format!("initial with {} levels", it.initial.len());
    let expected = match most {
        0 => "none: inputs of an el1252 follow the outputs".to_owned(),
        _ => format!("{most} at most, one for each channel"),
    };
    Err(Problem::new(entry.key("initial"), found, expected, "correct initial"))
}

/// Checks that no key belongs to another kind of application.
fn misplaced(application: ApplicationKind, entry: Place<'_>) -> Checked<()> {
    let keys: [(&[&str], &[ApplicationKind], _); 7] = [
        (
            &["channels"],
            &[DigitalOutputs, DigitalInputs, AnalogueInput, AnalogueOutput, Encoder],
            "digital or analogue channels, or encoders",
        ),
        (&["initial"], &[DigitalInputs], "digital_inputs or an el1008"),
        (&["encoder_counts"], &[ServoDrive, Encoder], "a servo_drive or an encoder"),
        (
            &[
                "axes",
                "inertia",
                "viscous_friction",
                "coulomb_friction",
                "rated_torque",
                "torque_limit",
                "limit_switches",
                "home_switch",
                "touch_probe",
                "quick_stop",
            ],
            &[ServoDrive],
            "a servo_drive",
        ),
        (&["source", "offset"], &[AnalogueInput], "an analogue_input"),
        (
            &["amplitude", "frequency"],
            &[AnalogueInput, ForceTorqueSensor],
            "an analogue_input or a force_torque_sensor",
        ),
        (&["rate", "follows"], &[Encoder], "an encoder"),
    ];
    for (keys, _, to) in keys.into_iter().filter(|(_, belongs, _)| !belongs.contains(&application)) {
        if let Some(key) = keys.iter().find(|key| entry.has(key)) {
            let found = format!("{key} for another kind of application");
            return Err(Problem::new(entry.key(key), found, format!("{key} only with {to}"), "remove it"));
        }
    }
    Ok(())
}

/// Checks that nothing describes what outputs drive.
fn beside_outputs(entry: Place<'_>) -> Checked<()> {
    let Some(key) = ["amplitude", "frequency", "offset"].into_iter().find(|key| entry.has(key)) else {
        return Ok(());
    };
    let found = format!("{key} together with source = \"outputs\"");
    let expected = format!("{key} only with source = \"sine\" or \"ramp\"");
    Err(Problem::new(entry.key(key), found, expected, "remove one of the two"))
}

/// Checks that an encoder counts by itself, or follows a shaft.
fn encoder(it: &Simulation, entry: Place<'_>) -> Checked<()> {
    match &it.follows {
        Some(follows) if entry.has("rate") => {
            let found = format!("rate together with follows = \"{follows}\"");
            let expected = "either its own rate, or the shaft that it follows";
            Err(Problem::new(entry.key("rate"), found, expected, "remove one of the two"))
        }
        None if entry.has("encoder_counts") => {
            let found = "encoder_counts of an encoder that follows no shaft";
            let expected = "rate, or encoder_counts with follows";
            Err(Problem::new(entry.key("encoder_counts"), found, expected, "add follows"))
        }
        _ => Ok(()),
    }
}

/// Checks that an encoder follows the shaft of a simulated servo drive.
pub(super) fn follows(it: &Simulation, bus: &[SubDevice], place: Place<'_>) -> Checked<()> {
    let Some(wanted) = &it.follows else { return Ok(()) };
    let drives = bus.iter().filter(|it| it.simulated_as() == Some(ServoDrive)).map(|it| it.name.as_str());
    if drives.clone().any(|name| name == wanted) {
        return Ok(());
    }
    let found = format!("follows = \"{wanted}\"");
    let expected = "the name of a SubDevice simulated as servo_drive";
    Err(unknown_name(place.key("follows"), found, expected, wanted, drives, "follows"))
}
