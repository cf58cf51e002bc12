//! Checks of sensors: signals that together are a measurement.

use std::collections::HashSet;

use types::near::nearest;

use super::Checked;
use super::signal::names;
use crate::error::Problem;
use crate::field::Place;
use crate::model::{NamedSignal, Sensor, SensorKind};

pub(super) fn sensors(sensors: &mut [Sensor], signals: &[NamedSignal], entries: Place<'_>) -> Checked<()> {
    let mut taken = HashSet::new();
    for (index, sensor) in sensors.iter_mut().enumerate() {
        let entry = entries.item(index);
        if !taken.insert(sensor.name.clone()) {
            let found = format!("a second sensor \"{}\"", sensor.name);
            return Err(Problem::new(entry.key("name"), found, "every name once", "rename one"));
        }
        if !entry.has("frame") {
            sensor.frame.clone_from(&sensor.name);
        }
        sensor.signals = parts(sensor, signals, entry)?;
    }
    Ok(())
}

/// Names of its signals, in the order of its kind.
fn parts(sensor: &Sensor, signals: &[NamedSignal], entry: Place<'_>) -> Checked<Vec<String>> {
    use SensorKind::{ForceTorque, Imu, Temperature};
    // Key, its signal, its values, the kind it belongs to, and whether that can be without.
    let keys = [
        ("force", &sensor.force, 3, ForceTorque, false),
        ("torque", &sensor.torque, 3, ForceTorque, false),
        ("acceleration", &sensor.acceleration, 3, Imu, false),
        ("angular_velocity", &sensor.angular_velocity, 3, Imu, false),
        ("orientation", &sensor.orientation, 4, Imu, true),
        ("temperature", &sensor.temperature, 1, Temperature, false),
    ];
    let name = &sensor.name;
    let mut parts = Vec::new();
    let mut taken: Vec<(&str, &String)> = Vec::new();
    for (key, signal, number, belongs, optional) in keys {
        match signal {
            Some(signal) if belongs == sensor.kind => {
                if let Some((other, _)) = taken.iter().find(|(_, taken)| *taken == signal) {
                    let found = format!("{key} = \"{signal}\", which is {other} of the sensor \"{name}\"");
                    return Err(Problem::new(
                        entry.key(key),
                        found,
                        "a separate signal",
                        format!("correct {key}"),
                    ));
                }
                taken.push((key, signal));
                parts.extend(values(key, signal, number, signals, entry)?);
            }
            Some(_) => {
                let found = format!("{key} of the sensor \"{name}\", which is of another kind");
                let expected = format!("{key} only with kind = \"{}\"", belongs.name());
                return Err(Problem::new(entry.key(key), found, expected, "remove it"));
            }
            None if belongs == sensor.kind && !optional => {
                let found = format!("the sensor \"{name}\" without {key}");
                let expected = format!("{key} = the name of a signal");
                return Err(Problem::new(entry.key("name"), found, expected, format!("add {key}")));
            }
            None => {}
        }
    }
    Ok(parts)
}

/// Names of the elements of a signal, with a check of their number.
fn values(
    key: &str,
    wanted: &str,
    number: usize,
    signals: &[NamedSignal],
    entry: Place<'_>,
) -> Checked<Vec<String>> {
    let all = || signals.iter().map(|signal| signal.name.get_ref().as_str());
    let signal = signals.iter().find(|signal| signal.name.get_ref() == wanted).ok_or_else(|| {
        let remedy = nearest(wanted, all())
            .map_or(format!("correct {key}"), |nearest| format!("did you mean \"{nearest}\"?"));
        let found = format!("{key} = \"{}\"", wanted);
        Problem::new(entry.key(key), found, "the name of a [[signal]]", remedy)
    })?;
    let names = names(signal)?;
    if names.len() == number {
        return Ok(names);
    }
    let found = format!("{key} = \"{}\", a signal of {}", wanted, counted(names.len()));
    let remedy = "correct its elements";
    Err(Problem::new(entry.key(key), found, format!("one of {}", counted(number)), remedy))
}

fn counted(values: usize) -> String {
    if values == 1 { "1 value".to_owned() } else { format!("{values} values") }
}
