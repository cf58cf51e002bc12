//! Checks of devices that are not on the bus.
//!
//! Checks of the shared-memory interface.

use super::{Checked, unknown_name};
use crate::error::Problem;
use crate::field::Number;
use crate::field::Place;
use crate::model::PeripheralKind::{self, Actuators, Imu, LedStrip, RangeFinder, Sonar};
use crate::model::{Axis, Controller, ControllerKind, ImuUnit, Ipc, Peripheral, PortKind, made_of};

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
            Actuators => {
                motors(it, entry)?;
                wheels(it, axes, controllers, entry.key("axes"))?;
            }
            Imu => unit(it, entry)?,
            RangeFinder | LedStrip => {}
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
            let remedy = "give the peripheral its own port: port = \"...\"";
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

/// Completes an IMU with its unit's address; only a myAHRS+ has outputs to choose from.
fn unit(it: &mut Peripheral, entry: Place<'_>) -> Checked<()> {
    if !entry.has("address") {
        it.address = it.unit.address();
    }
    if entry.has("output") && it.unit != ImuUnit::MyAhrs {
        let found = format!("output of an {}", it.unit.name());
        let remedy = "remove it, or correct the unit";
        return Err(Problem::new(entry.key("output"), found, "output only of unit = \"myahrs\"", remedy));
    }
    Ok(())
}

/// Checks DC motors behind a converter: their keys, and that no turn of a wheel can pass unseen.
fn motors(it: &Peripheral, entry: Place<'_>) -> Checked<()> {
    let wrong = |key, found: String, expected: &str, remedy: &str| {
        Err(Problem::new(entry.key(key), found, expected, remedy))
    };
    if it.dac.is_none() {
        let keys = ["device", "encoders", "full_scale", "motors_reversed", "encoders_reversed"];
        let Some(key) = keys.into_iter().find(|key| entry.has(key)) else { return Ok(()) };
        let expected = "a key of DC motors only with dac = \"mcp4912\" or \"mcp4922\"";
        return wrong(key, format!("{key} of actuators without dac"), expected, "add dac, or remove it");
    }
    if it.axes.is_some() {
        let found = "actuators with dac and axes".to_owned();
        return wrong("axes", found, "one of them: DC motors, or axes of the bus", "remove one of them");
    }
    if !entry.has("full_scale") {
        let expected = "full_scale, the velocity of a wheel at the end of the converter's range, rad/s";
        return wrong("dac", "dac without full_scale".to_owned(), expected, "add it");
    }
    if it.velocity > it.full_scale {
        let found =
            format!("velocity {} of wheels with full_scale {}", Number(it.velocity), Number(it.full_scale));
        return wrong(
            "full_scale",
            found,
            "a velocity up to full_scale",
            "lower the one or raise the other",
        );
    }
    if it.device.is_some() && it.encoders.is_none() {
        let expected = "encoders = [LEFT, RIGHT], their SPI devices";
        return wrong("device", "a converter without encoders".to_owned(), expected, "add them");
    }
    if let Some([left, right]) = &it.encoders {
        if left == right || it.device.as_ref().is_some_and(|dac| dac == left || dac == right) {
            let expected = "three SPI devices, one each for the converter and the encoders";
            return wrong(
                "encoders",
                "one SPI device for two parts".to_owned(),
                expected,
                "correct one of them",
            );
        }
    }
    let (milliseconds, turned) = (it.period.as_secs_f64() * 1e3, it.velocity * it.period.as_secs_f64());
    if milliseconds > LONGEST_OF_MOTORS || turned > MOST_TURNED {
        let found =
            format!("period {milliseconds} ms of DC motors that turn {} rad/s", Number(it.velocity));
        let expected =
            format!("at most {LONGEST_OF_MOTORS} ms, and at most {MOST_TURNED} rad of movement in it");
        let remedy = "shorten the period, or lower the velocity";
        return Err(Problem::new(entry.first_of(&["period", "velocity", "kind"]), found, expected, remedy));
    }
    Ok(())
}

/// Longest period of DC motors, ms: they are stopped after 50 ms without a command.
const LONGEST_OF_MOTORS: f64 = 20.0;

/// Way of a wheel in a period, rad, of which several may pass unseen before half a turn does.
const MOST_TURNED: f64 = 0.6;

/// Checks the axes of actuators, and that a controller follows their velocities, which arrive by
/// the shared-memory interface.
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
        (&["address", "unit", "output"], Imu),
        (
            &[
                "axes",
                "velocity",
                "acceleration",
                "dac",
                "encoders",
                "full_scale",
                "motors_reversed",
                "encoders_reversed",
            ],
            Actuators,
        ),
    ];
    for (keys, of) in keys.into_iter().filter(|&(_, of)| of != kind) {
        if let Some(key) = keys.iter().find(|key| entry.has(key)) {
            let found = format!("{key} in a peripheral of the kind {}", kind.name());
            let expected = format!("{key} in a peripheral of the kind {}", of.name());
            let remedy = "remove it, or correct the kind";
            return Err(Problem::new(entry.key(key), found, expected, remedy));
        }
    }
    Ok(())
}

pub(super) fn ipc(ipc: &mut Ipc, robot: &str, entry: Place<'_>) -> Checked<()> {
    if ipc.name.is_empty() {
        ipc.name = made_of(robot);
    }
    for (index, port) in ipc.ports.iter().enumerate() {
        let place = entry.key("port").item(index);
        if OURS.contains(&port.name.as_str()) || ipc.ports[..index].iter().any(|it| it.name == port.name) {
            let found = format!("a second port \"{}\"", port.name);
            return Err(Problem::new(place.key("name"), found, "every name once", "give it another name"));
        }
        if port.kind == PortKind::Stream && place.has("depth") {
            let (found, remedy) = ("a depth for a stream of bytes", "remove it; size is its capacity");
            return Err(Problem::new(place.key("depth"), found, "depth only of messages", remedy));
        }
        if let Some(expected) = port.kind.complaint(port.size, port.depth) {
            let found = format!("{} messages of {} bytes", port.depth, port.size);
            return Err(Problem::new(place.key("size"), found, expected, "lower size or depth"));
        }
    }
    Ok(())
}

/// Ports that every interface has.
pub(super) const OURS: [&str; 3] = ["control", "stop", "trajectory"];
