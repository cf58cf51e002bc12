//! Checks that need more than one key: from the keys of a file to the description of a robot.

mod axis;
mod body;
mod brake;
mod bus;
mod clock;
mod controller;
pub(crate) mod cycle;
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

use toml::Spanned;

use crate::Overrides;
use crate::description::{Robot, Signals};
use crate::error::Problem;
use crate::file;

/// Text of a robot file, and its name.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) text: &'a str,
    pub(crate) file: &'a str,
}

type Checked<T> = Result<T, Problem>;

/// Description of the robot in `document`, or the first problem.
pub(crate) fn robot(document: file::Document, overrides: Overrides, source: Source<'_>) -> Checked<Robot> {
    let cycle = cycle::cycle(document.cycle.get_ref(), overrides)?;
    let bus = bus::bus(document.bus, &document.device, &cycle)?;
    let axes = axis::axes(&document.axis, &bus, &cycle)?;
    let interlocks = interlock::interlocks(&document.interlock, &bus, &axes)?;
    signal::named(&document.signal, &bus)?;
    let sensors = sensor::sensors(&document.sensor, &document.signal)?;
    let base = document.base.as_ref().map(|base| body::base(base, &axes)).transpose()?;
    let arm = document.arm.as_ref().map(|arm| body::arm(arm, &axes)).transpose()?;
    let controllers = {
        let bodies = controller::Bodies { base: base.as_ref(), arm: arm.as_ref() };
        controller::controllers(&document.controller.0, &axes, bodies, &cycle)?
    };
    let name = document.name.unwrap_or_else(|| "robot".to_owned());
    let ipc = ipc::ipc(&document.ipc, &name)?;
    let peripherals = peripheral::peripherals(&document.peripheral, &axes, &controllers, &ipc)?;
    let Source { text, file } = source;
    let signals = Signals { named: document.signal, text: text.to_owned(), file: file.to_owned() };
    let robot = Robot {
        name,
        cycle,
        bus,
        axes,
        interlocks,
        signals,
        sensors,
        controllers,
        base,
        arm,
        ipc,
        peripherals,
    };
    signal::signals(&robot, |position| robot.bus.sub_devices[position].explicit_mapping())?;
    Ok(robot)
}

/// Checks that a name can be read in a table and typed on a command line.
pub(crate) fn readable_name(name: &Spanned<String>) -> Checked<()> {
    let text = name.get_ref();
    let readable =
        !text.trim().is_empty() && text.chars().count() <= 64 && !text.chars().any(char::is_control);
    readable.then_some(()).ok_or_else(|| {
        Problem::new(
            name.span(),
            format!("the name {text:?}"),
            "1 to 64 characters, none of them a control character",
            "give it a name that can be read in a table",
        )
    })
}
