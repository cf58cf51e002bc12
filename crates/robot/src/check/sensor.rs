//! Checks of sensors: signals that together are a measurement.

use std::collections::HashSet;

use toml::Spanned;

use super::Checked;
use super::signal::names;
use crate::description::{Sensor, SensorKind};
use crate::error::Problem;
use crate::file;
use crate::nearest::nearest;

pub(super) fn sensors(entries: &[file::Sensor], signals: &[file::Signal]) -> Checked<Vec<Sensor>> {
    let mut taken = HashSet::new();
    let mut sensors = Vec::new();
    for entry in entries {
        let name = entry.name.get_ref();
        let is_token = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !name.contains("__");
        if !is_token {
            let found = format!("the sensor \"{name}\"");
            let expected = "letters, digits and single underscores, a letter first: a name that ROS takes";
            return Err(Problem::new(entry.name.span(), found, expected, "rename it"));
        }
        if !taken.insert(name) {
            let found = format!("a second sensor \"{name}\"");
            return Err(Problem::new(entry.name.span(), found, "every name once", "rename one"));
        }
        let frame = entry.frame.as_ref().map_or(name, Spanned::get_ref).clone();
        sensors.push(Sensor {
            name: name.clone(),
            kind: kind(entry.kind),
            frame,
            signals: parts(entry, signals)?,
        });
    }
    Ok(sensors)
}

fn kind(kind: file::SensorKind) -> SensorKind {
    match kind {
        file::SensorKind::ForceTorque => SensorKind::ForceTorque,
        file::SensorKind::Imu => SensorKind::Imu,
        file::SensorKind::Temperature => SensorKind::Temperature,
    }
}

/// Names of its signals, in the order of its kind.
fn parts(entry: &file::Sensor, signals: &[file::Signal]) -> Checked<Vec<String>> {
    use file::SensorKind::{ForceTorque, Imu, Temperature};
    // Key, its signal, its values, the kind it belongs to, and whether that can be without.
    let keys = [
        ("force", &entry.force, 3, ForceTorque, false),
        ("torque", &entry.torque, 3, ForceTorque, false),
        ("acceleration", &entry.acceleration, 3, Imu, false),
        ("angular_velocity", &entry.angular_velocity, 3, Imu, false),
        ("orientation", &entry.orientation, 4, Imu, true),
        ("temperature", &entry.temperature, 1, Temperature, false),
    ];
    let name = entry.name.get_ref();
    let mut parts = Vec::new();
    for (key, signal, number, belongs, optional) in keys {
        match signal {
            Some(signal) if belongs == entry.kind => parts.extend(values(key, signal, number, signals)?),
            Some(signal) => {
                let found = format!("{key} of the sensor \"{name}\", which is of another kind");
                let expected = format!("{key} only with kind = \"{}\"", kind(belongs).name());
                return Err(Problem::new(signal.span(), found, expected, "remove it"));
            }
            None if belongs == entry.kind && !optional => {
                let found = format!("the sensor \"{name}\" without {key}");
                let expected = format!("{key} = the name of a signal");
                return Err(Problem::new(entry.name.span(), found, expected, format!("add {key}")));
            }
            None => {}
        }
    }
    Ok(parts)
}

/// Names of the elements of a signal that has so many.
fn values(
    key: &str,
    wanted: &Spanned<String>,
    number: usize,
    signals: &[file::Signal],
) -> Checked<Vec<String>> {
    let all = || signals.iter().map(|signal| signal.name.get_ref().as_str());
    let signal =
        signals.iter().find(|signal| signal.name.get_ref() == wanted.get_ref()).ok_or_else(|| {
            let remedy = nearest(wanted.get_ref(), all())
                .map_or(format!("correct {key}"), |nearest| format!("did you mean \"{nearest}\"?"));
            let found = format!("{key} = \"{}\"", wanted.get_ref());
            Problem::new(wanted.span(), found, "the name of a [[signal]]", remedy)
        })?;
    let names = names(signal)?;
    if names.len() == number {
        return Ok(names);
    }
    let found = format!("{key} = \"{}\", a signal of {}", wanted.get_ref(), counted(names.len()));
    let remedy = "correct its elements";
    Err(Problem::new(wanted.span(), found, format!("one of {}", counted(number)), remedy))
}

fn counted(values: usize) -> String {
    if values == 1 { "1 value".to_owned() } else { format!("{values} values") }
}
