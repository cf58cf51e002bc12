//! Checks of devices beside the bus.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;

use super::{Checked, cycle, number, readable_name};
use crate::description::{Axis, Controller, ControllerKind, Ipc, Peripheral, PeripheralKind};
use crate::error::Problem;
use crate::file;
use crate::file::PeripheralKind as Kind;
use crate::nearest::nearest;

pub(super) fn peripherals(
    entries: &[file::Peripheral],
    axes: &[Axis],
    controllers: &[Controller],
    ipc: &Ipc,
) -> Checked<Vec<Peripheral>> {
    let mut found: Vec<Peripheral> = Vec::new();
    for entry in entries {
        let one = peripheral(entry, axes)?;
        if let (PeripheralKind::Actuators { axes: Some(wheels), .. }, Some(names)) =
            (&one.kind, &entry.axes)
        {
            turned(*wheels, names, controllers)?;
        }
        let place = |it: &Option<Spanned<String>>| it.as_ref().map_or(entry.kind.span(), Spanned::span);
        if found.iter().any(|other| other.name == one.name) {
            let found = format!("a second peripheral \"{}\"", one.name);
            return Err(Problem::new(place(&entry.name), found, "every name once", "give it another name"));
        }
        let taken = ipc.ports.iter().any(|port| port.name == one.port)
            || ["control", "trajectory"].contains(&one.port.as_str())
            || found.iter().any(|other| other.port == one.port);
        if taken {
            let found = format!("a second port \"{}\"", one.port);
            let remedy = "give the peripheral a port of its own: port = \"...\"";
            return Err(Problem::new(place(&entry.port), found, "every port once", remedy));
        }
        found.push(one);
    }
    Ok(found)
}

fn peripheral(entry: &file::Peripheral, axes: &[Axis]) -> Checked<Peripheral> {
    only_its_own_keys(entry)?;
    let kind = *entry.kind.get_ref();
    let (word, port, period) = usual(kind);
    for name in entry.name.iter().chain(&entry.port) {
        readable_name(name)?;
    }
    let text = |it: &Option<Spanned<String>>, usual: &str| {
        it.as_ref().map_or_else(|| usual.to_owned(), |it| it.get_ref().clone())
    };
    let period = match &entry.period {
        None => Duration::from_millis(period),
        Some(length) => {
            let range = (Duration::from_millis(1), Duration::from_secs(10));
            cycle::within("period", length.get_ref().0, range, length, "a device is asked once a period")?;
            length.get_ref().0
        }
    };
    Ok(Peripheral {
        name: text(&entry.name, word),
        port: text(&entry.port, port),
        period,
        priority: number::optional_whole("priority", entry.priority.as_ref(), 1..=98)?.map(|it| it as u8),
        cpu: number::optional_whole("cpu", entry.cpu.as_ref(), 0..=1_023)?.map(|it| it as usize),
        device: entry.device.as_ref().map(device).transpose()?,
        kind: of_kind(entry, kind, axes)?,
    })
}

/// Default name, port and period, ms, of a kind; the periods are those of the service robot paper.
fn usual(kind: Kind) -> (&'static str, &'static str, u64) {
    match kind {
        Kind::Sonar => ("sonar", "sonar", 30),
        Kind::RangeFinder => ("range_finder", "scan", 200),
        Kind::LedStrip => ("led_strip", "led", 20),
        Kind::Imu => ("imu", "imu", 10),
        Kind::Actuators => ("actuators", "wheels", 10),
    }
}

fn device(path: &Spanned<PathBuf>) -> Checked<PathBuf> {
    if path.get_ref().is_absolute() {
        return Ok(path.get_ref().clone());
    }
    let found = format!("device = {:?}", path.get_ref());
    let expected = "the whole path of a device, as \"/dev/ttyACM0\"";
    Err(Problem::new(path.span(), found, expected, "write it from / on"))
}

fn of_kind(entry: &file::Peripheral, kind: Kind, axes: &[Axis]) -> Checked<PeripheralKind> {
    let whole = |key: &str, value: &Option<Spanned<i64>>, range, usual: i64| {
        number::optional_whole(key, value.as_ref(), range).map(|it| it.unwrap_or(usual))
    };
    let positive = |key: &str, value: &Option<Spanned<f64>>, usual: f64| {
        value.as_ref().map_or(Ok(usual), |value| number::positive(key, value))
    };
    Ok(match kind {
        Kind::Sonar => PeripheralKind::Sonar {
            lines: lines(entry)?,
            temperature: positive("temperature", &entry.temperature, 293.15)?,
        },
        Kind::RangeFinder => PeripheralKind::RangeFinder {
            baud: whole("baud", &entry.baud, 1_200..=4_000_000, 115_200)? as u32,
            watched: positive("watched", &entry.watched, 0.5)?,
        },
        Kind::LedStrip => PeripheralKind::LedStrip {
            without_clock: entry.chip.as_ref().is_some_and(|it| *it.get_ref() == file::LedChip::Ws2812),
            leds: whole("leds", &entry.leds, 1..=512, 60)? as usize,
            brightness: whole("brightness", &entry.brightness, 0..=31, 8)? as u8,
        },
        Kind::Imu => {
            PeripheralKind::Imu { address: whole("address", &entry.address, 0x08..=0x77, 0x68)? as u16 }
        }
        Kind::Actuators => PeripheralKind::Actuators {
            axes: entry.axes.as_ref().map(|names| wheels(names, axes)).transpose()?,
            velocity: positive("velocity", &entry.velocity, 10.0)?,
            acceleration: positive("acceleration", &entry.acceleration, 20.0)?,
        },
    })
}

/// Lines of a sonar; a real one has two.
fn lines(entry: &file::Peripheral) -> Checked<(u32, u32)> {
    let line = |key: &str, value: &Option<Spanned<i64>>| match value {
        Some(value) => number::whole(key, value, 0..=1_023).map(|it| it as u32),
        None if entry.device.is_none() => Ok(0),
        None => {
            let found = format!("a sonar without {key}");
            let expected = "trigger and echo, the numbers of its lines on the chip";
            Err(Problem::new(entry.kind.span(), found, expected, "add both"))
        }
    };
    let both = (line("trigger", &entry.trigger)?, line("echo", &entry.echo)?);
    match &entry.echo {
        Some(echo) if both.0 == both.1 => {
            let found = format!("trigger and echo on line {}", both.0);
            Err(Problem::new(echo.span(), found, "two lines", "correct one of them"))
        }
        _ => Ok(both),
    }
}

fn wheels(names: &Spanned<[String; 2]>, axes: &[Axis]) -> Checked<[usize; 2]> {
    let place = |name: &str| {
        axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
            let remedy = nearest(name, axes.iter().map(|axis| axis.name.as_str()))
                .map_or("correct the name".to_owned(), |nearest| format!("did you mean \"{nearest}\"?"));
            let found = format!("a wheel on the unknown axis \"{name}\"");
            Problem::new(names.span(), found, "the names of two [[axis]]", remedy)
        })
    };
    let [left, right] = names.get_ref();
    let (left, right) = (place(left)?, place(right)?);
    if left == right {
        let found = "the same axis for both wheels";
        return Err(Problem::new(names.span(), found, "two axes, left and right", "correct one of them"));
    }
    Ok([left, right])
}

/// Checks that a controller follows the velocities of the actuators, which arrive by the shared-memory
/// interface.
fn turned(wheels: [usize; 2], names: &Spanned<[String; 2]>, controllers: &[Controller]) -> Checked<()> {
    let turns = |it: &Controller| {
        matches!(it.kind, ControllerKind::JointVelocity)
            && wheels.iter().all(|wheel| it.axes.contains(wheel))
    };
    if controllers.iter().any(turns) {
        return Ok(());
    }
    let expected = "a [[controller]] of the kind \"joint_velocity\" that has both axes";
    Err(Problem::new(
        names.span(),
        "wheels that no controller turns",
        expected,
        "add one, first of all controllers",
    ))
}

/// Refuses keys of another kind, which show that another kind was meant.
fn only_its_own_keys(entry: &file::Peripheral) -> Checked<()> {
    fn span<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
        value.as_ref().map(Spanned::span)
    }
    let keys = [
        ("trigger", span(&entry.trigger), Kind::Sonar),
        ("echo", span(&entry.echo), Kind::Sonar),
        ("temperature", span(&entry.temperature), Kind::Sonar),
        ("baud", span(&entry.baud), Kind::RangeFinder),
        ("watched", span(&entry.watched), Kind::RangeFinder),
        ("chip", span(&entry.chip), Kind::LedStrip),
        ("leds", span(&entry.leds), Kind::LedStrip),
        ("brightness", span(&entry.brightness), Kind::LedStrip),
        ("address", span(&entry.address), Kind::Imu),
        ("axes", span(&entry.axes), Kind::Actuators),
        ("velocity", span(&entry.velocity), Kind::Actuators),
        ("acceleration", span(&entry.acceleration), Kind::Actuators),
    ];
    let kind = *entry.kind.get_ref();
    let mut wrong = keys.into_iter().filter_map(|(key, span, of)| Some((key, span?, of)));
    let device = span(&entry.device).filter(|_| kind == Kind::Actuators);
    let wrong = wrong.find(|&(_, _, of)| of != kind).map(|(key, span, of)| {
        let expected = format!("{key} in a peripheral of the kind {}", usual(of).0);
        (key, span, expected)
    });
    let wrong =
        wrong.or(device.map(|span| ("device", span, "axes = [LEFT, RIGHT], axes of the bus".to_owned())));
    wrong.map_or(Ok(()), |(key, span, expected)| {
        let found = format!("{key} in a peripheral of the kind {}", usual(kind).0);
        Err(Problem::new(span, found, expected, "remove it, or correct the kind"))
    })
}
