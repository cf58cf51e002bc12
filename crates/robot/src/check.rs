//! Checks that need more than one key, and values that follow from several keys.

mod axis;
mod body;
mod brake;
pub(crate) mod bus;
mod controller;
mod cycle;
mod homing;
mod interlock;
mod peripheral;
mod presence;
mod repeat;
mod sensor;
pub(crate) mod signal;
mod simulation;

use std::ops::Range;

use crate::value::Spanned;

use crate::error::Problem;
pub(crate) use crate::error::{Checked, unknown_name};
use crate::field;
use crate::field::Place;
use crate::model::{RobotConfig, SubDevice};

/// Completes the robot of `file`, or returns the first problem.
pub(crate) fn robot(robot: &mut RobotConfig, file: Place<'_>) -> Checked<()> {
    let RobotConfig { cycle, bus, axes, signals, .. } = robot;
    cycle::cycle(cycle, file.key("cycle"))?;
    cycle::followed(cycle, bus.distributed_clocks, file.key("cycle"))?;
    bus::bus(bus, &robot.device, cycle, file.key("bus"))?;
    axis::axes(axes, bus, cycle, file.key("axis"))?;
    robot.interlocks = interlock::interlocks(&robot.interlock_keys, bus, axes, file.key("interlock"))?;
    signal::named(&signals.named, bus)?;
    sensor::sensors(&mut robot.sensors, &signals.named, file.key("sensor"))?;
    robot.base.iter_mut().try_for_each(|base| body::base(base, axes, file.key("base")))?;
    robot.arm.iter_mut().try_for_each(|arm| body::arm(arm, axes, file.key("arm")))?;
    let entries = file.key("frame");
    body::frames(&mut robot.frames, robot.base.as_ref(), axes, robot.arm.is_some(), entries)?;
    let parts = controller::Parts { axes, base: robot.base.as_ref(), arm: robot.arm.as_ref(), cycle };
    controller::controllers(&mut robot.controllers, parts, file.key("controller"))?;
    controller::modes_of_axes(axes, &robot.controllers, bus, file.key("controller"))?;
    peripheral::ipc(&mut robot.ipc, &robot.name, file.key("ipc"))?;
    let entries = file.key("peripheral");
    peripheral::peripherals(&mut robot.peripherals, axes, &robot.controllers, &robot.ipc, entries)?;
    signal::signals(robot, |position| robot.bus.sub_devices[position].explicit_mapping()).map(|_| ())
}

/// Checks that `what`, which the safety of an axis depends on, is on a SubDevice that exchanges
/// process data in every cycle.
fn in_every_cycle(what: &str, sub_device: &SubDevice, place: Place<'_>) -> Checked<()> {
    sub_device.slow().map_or(Ok(()), |slow| {
        let expected = "a SubDevice with process data in every cycle";
        Err(Problem::new(
            place,
            format!("{what} on {slow}"),
            expected,
            "remove every there, or name another SubDevice",
        ))
    })
}

/// Checks that a name can be read in a table and typed on a command line.
fn readable_name(name: &Spanned<String>) -> Checked<()> {
    check_readable(name.get_ref(), name.span())
}

fn check_readable(name: &str, place: impl Into<Range<usize>>) -> Checked<()> {
    field::check_readable(name)
        .map_err(|[found, expected, remedy]| Problem::new(place, found, expected, remedy))
}
