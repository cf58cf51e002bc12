//! Checks of devices beside the bus.

use super::ipc::OURS;
use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::model::PeripheralKind::{Actuators, Imu, LedStrip, RangeFinder, Sonar};
use crate::model::{Axis, Controller, ControllerKind, Ipc, Peripheral, PeripheralKind};
use crate::place::Place;

/// Completes peripherals with the names, ports and periods of their kinds, and checks them.
pub(super) fn peripherals(
    peripherals: &mut [Peripheral],
    axes: &[Axis],
    controllers: &[Controller],
    ipc: &Ipc,
    entries: Place<'_>,
) -> Checked<()> {
    for index in 0..peripherals.len() {
        let entry = entries.item(index);
        let (others, it) = peripherals.split_at_mut(index);
        let it = &mut it[0];
        only_its_own_keys(it.kind, entry)?;
        if !entry.has("name") {
            it.name = it.kind.name().to_owned();
        }
        if !entry.has("port") {
            it.port = it.kind.port().to_owned();
        }
        if !entry.has("period") {
            it.period = it.kind.period();
        }
        match it.kind {
            Sonar => lines(it, entry)?,
            Actuators => wheels(it, axes, controllers, entry.key("axes"))?,
            RangeFinder | LedStrip | Imu => {}
        }
        if others.iter().any(|other| other.name == it.name) {
            let found = format!("a second peripheral \"{}\"", it.name);
            let place = entry.first_of(&["name", "kind"]);
            return Err(Problem::new(place, found, "every name once", "give it another name"));
        }
        let taken = ipc.ports.iter().any(|port| port.name == it.port)
            || OURS.contains(&it.port.as_str())
            || others.iter().any(|other| other.port == it.port);
        if taken {
            let found = format!("a second port \"{}\"", it.port);
            let remedy = "give the peripheral a port of its own: port = \"...\"";
            return Err(Problem::new(entry.first_of(&["port", "kind"]), found, "every port once", remedy));
        }
    }
    Ok(())
}

/// Checks the lines of a sonar; a real one has two.
fn lines(sonar: &Peripheral, entry: Place<'_>) -> Checked<()> {
    let missing = ["trigger", "echo"].into_iter().find(|key| !entry.has(key));
    if let Some(key) = missing.filter(|_| sonar.device.is_some()) {
        let found = format!("a sonar without {key}");
        let expected = "trigger and echo, the numbers of its lines on the chip";
        return Err(Problem::new(entry.key("kind"), found, expected, "add both"));
    }
    if entry.has("echo") && sonar.trigger == sonar.echo {
        let found = format!("trigger and echo on line {}", sonar.echo);
        return Err(Problem::new(entry.key("echo"), found, "two lines", "correct one of them"));
    }
    Ok(())
}

/// Checks the axes of actuators, and that a controller follows their velocities, which arrive by the shared-memory
/// interface.
fn wheels(it: &Peripheral, axes: &[Axis], controllers: &[Controller], place: Place<'_>) -> Checked<()> {
    let Some(names) = &it.axes else { return Ok(()) };
    let position = |name: &String| {
        axes.iter().position(|axis| axis.name == *name).ok_or_else(|| {
            let found = format!("a wheel on the unknown axis \"{name}\"");
            let known = axes.iter().map(|axis| axis.name.as_str());
            unknown_name(place, found, "the names of two [[axis]]", name, known, "the name")
        })
    };
    let wheels = [position(&names[0])?, position(&names[1])?];
    if wheels[0] == wheels[1] {
        let found = "the same axis for both wheels";
        return Err(Problem::new(place, found, "two axes, left and right", "correct one of them"));
    }
    let turns = |it: &Controller| {
        matches!(it.kind, ControllerKind::JointVelocity)
            && wheels.iter().all(|wheel| it.axes.contains(wheel))
    };
    if controllers.iter().any(turns) {
        return Ok(());
    }
    let expected = "a [[controller]] of the kind \"joint_velocity\" that has both axes";
    let remedy = "add one, first of all controllers";
    Err(Problem::new(place, "wheels that no controller turns", expected, remedy))
}

/// Refuses keys of another kind, which show that another kind was meant.
fn only_its_own_keys(kind: PeripheralKind, entry: Place<'_>) -> Checked<()> {
    let keys: [(&[&str], _); 5] = [
        (&["trigger", "echo", "temperature"], Sonar),
        (&["baud", "watched"], RangeFinder),
        (&["chip", "leds", "brightness"], LedStrip),
        (&["address"], Imu),
        (&["axes", "velocity", "acceleration"], Actuators),
    ];
    let wrong = |key: &str, expected: String| {
        let found = format!("{key} in a peripheral of the kind {}", kind.name());
        Err(Problem::new(entry.key(key), found, expected, "remove it, or correct the kind"))
    };
    for (keys, of) in keys.into_iter().filter(|&(_, of)| of != kind) {
        if let Some(key) = keys.iter().find(|key| entry.has(key)) {
            return wrong(key, format!("{key} in a peripheral of the kind {}", of.name()));
        }
    }
    if kind == Actuators && entry.has("device") {
        return wrong("device", "axes = [LEFT, RIGHT], axes of the bus".to_owned());
    }
    Ok(())
}
