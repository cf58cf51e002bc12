//! Checks that need more than one key: from the keys of a file to the description of a robot.

mod axis;
mod body;
mod brake;
mod bus;
mod clock;
mod controller;
mod cycle;
mod homing;
mod interlock;
mod ipc;
mod mapping;
pub(crate) mod number;
mod peripheral;
mod repeat;
mod sensor;
pub(crate) mod signal;
mod simulation;
mod startup;
mod topology;
mod watchdog;

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;

use crate::Overrides;
use crate::error::Problem;
use crate::field;
use crate::file;
use crate::model::{Robot, Signals};
use crate::nearest::nearest;
use crate::source::Source;

type Checked<T> = Result<T, Problem>;

/// Description of the robot in `document`, or the first problem.
pub(crate) fn robot(document: file::Document, overrides: Overrides, source: &Source<'_>) -> Checked<Robot> {
    let file::Document { mut cycle, mut sensor, mut ipc, mut peripheral, .. } = document;
    cycle::cycle(&mut cycle, overrides, source.key("cycle"))?;
    let bus = bus::bus(document.bus, &document.device, &cycle)?;
    let axes = axis::axes(&document.axis, &bus, &cycle)?;
    let interlocks = interlock::interlocks(&document.interlock, &bus, &axes)?;
    signal::named(&document.signal, &bus)?;
    sensor::sensors(&mut sensor, &document.signal, source.key("sensor"))?;
    let base = document.base.as_ref().map(|base| body::base(base, &axes)).transpose()?;
    let arm = document.arm.as_ref().map(|arm| body::arm(arm, &axes)).transpose()?;
    let controllers = {
        let bodies = controller::Bodies { base: base.as_ref(), arm: arm.as_ref() };
        controller::controllers(&document.controller.0, &axes, bodies, &cycle)?
    };
    let name = document.name.unwrap_or_else(|| "robot".to_owned());
    ipc::ipc(&mut ipc, &name, source.key("ipc"))?;
    peripheral::peripherals(&mut peripheral, &axes, &controllers, &ipc, source.key("peripheral"))?;
    let signals = Signals { named: document.signal, ..Signals::default() };
    let robot = Robot {
        name,
        cycle,
        bus,
        axes,
        interlocks,
        signals,
        sensors: sensor,
        controllers,
        base,
        arm,
        ipc,
        peripherals: peripheral,
    };
    signal::signals(&robot, |position| robot.bus.sub_devices[position].explicit_mapping())?;
    Ok(robot)
}

/// Checks that a name can be read in a table and typed on a command line.
pub(crate) fn readable_name(name: &Spanned<String>) -> Checked<()> {
    field::check_readable(name.get_ref())
        .map_err(|[found, expected, remedy]| Problem::new(name.span(), found, expected, remedy))
}

/// A time within `range`.
fn time_within(
    key: &str,
    length: &Spanned<file::Length>,
    range: RangeInclusive<Duration>,
    remedy: &str,
) -> Checked<Duration> {
    let time = length.get_ref().0;
    let checked = field::within(key, time, &range);
    checked.map_err(|[found, expected]| Problem::new(length.span(), found, expected, remedy))?;
    Ok(time)
}

/// Problem of a name that is not among `known`, with the nearest of them, or the advice to correct `key`.
fn unknown_name<'a>(
    place: impl Into<Range<usize>>,
    found: String,
    expected: &str,
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
    key: &str,
) -> Problem {
    let remedy = nearest(wanted, known)
        .map_or_else(|| format!("correct {key}"), |nearest| format!("did you mean \"{nearest}\"?"));
    Problem::new(place, found, expected, remedy)
}
