//! From what a file says to what a robot is: every check that needs more than one key.

mod axis;
mod bus;
mod clock;
mod controller;
mod mapping;
mod number;
mod repeat;
mod simulation;
mod startup;
mod topology;

use std::time::Duration;

use toml::Spanned;

use crate::Overrides;
use crate::description::{Cycle, FrameOrder, Robot};
use crate::duration;
use crate::error::Problem;
use crate::file;

type Checked<T> = Result<T, Problem>;

/// Shortest and longest period a cycle may have.
const PERIODS: (Duration, Duration) = (Duration::from_micros(50), Duration::from_secs(1));

/// Highest CPU number: as many as the kernel's CPU sets hold.
const HIGHEST_CPU: i64 = 1023;

/// The description of the robot in `document`, or the first problem.
pub(crate) fn robot(document: file::Document, overrides: Overrides) -> Checked<Robot> {
    let cycle = cycle(document.cycle.get_ref(), overrides)?;
    let bus = bus::bus(document.bus, &document.device, &cycle)?;
    let axes = axis::axes(&document.axis, &bus, &cycle)?;
    let controller = controller::controller(document.controller.as_ref(), &axes, &cycle)?;
    let name = document.name.unwrap_or_else(|| "robot".to_owned());
    Ok(Robot { name, cycle, bus, axes, controller })
}

fn cycle(cycle: &file::Cycle, overrides: Overrides) -> Checked<Cycle> {
    let (shortest, longest) = PERIODS;
    let period = overrides.period.unwrap_or(cycle.period.get_ref().0);
    if !(shortest..=longest).contains(&period) {
        return Err(Problem::new(
            cycle.period.span(),
            format!("period {}", duration::format(period)),
            format!("{} to {}", duration::format(shortest), duration::format(longest)),
            "choose a period the bus and the machine can hold, as \"1ms\"",
        ));
    }
    let priority = number::optional_whole("priority", cycle.priority.as_ref(), 1..=99)?;
    let cpu = number::optional_whole("cpu", cycle.cpu.as_ref(), 0..=HIGHEST_CPU)?;
    Ok(Cycle {
        period,
        priority: priority.map(|priority| priority as u8),
        cpu: cpu.map(|cpu| cpu as usize),
        memory_lock: cycle.memory_lock.unwrap_or(true),
        frame_order: match cycle.frame_order {
            file::FrameOrder::ReplyOfLastBeat => FrameOrder::ReplyOfLastBeat,
            file::FrameOrder::WaitForReply => FrameOrder::WaitForReply,
        },
    })
}

/// A name people can read in a table and type on a command line.
fn readable_name(name: &Spanned<String>) -> Checked<()> {
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
