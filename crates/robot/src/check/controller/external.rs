//! Checks of a controller that runs in a process of its own.

use std::time::Duration;

use toml::Spanned;

use crate::check::{Checked, number, time_within};
use crate::error::Problem;
use crate::file;
use crate::model::{Controller, ControllerKind, Cycle, External};

/// Deadline and patience of `entry`.
pub(super) fn external(entry: &file::Controller, cycle: &Cycle) -> Checked<External> {
    let usual = External::usual(cycle.period);
    let range = SHORTEST_DEADLINE..=cycle.period * 3 / 4;
    let remedy = "leave the last quarter of the period to the frame, as \"500us\" of \"1ms\"";
    let deadline =
        entry.deadline.as_ref().map(|it| time_within("deadline", it, range, remedy)).transpose()?;
    let max_late = number::optional_whole("max_late", entry.max_late.as_ref(), 1..=MOST_LATE)?;
    Ok(External {
        deadline: deadline.unwrap_or(usual.deadline),
        max_late: max_late.map_or(usual.max_late, |late| late as u32),
    })
}

/// Checks that one controller at most runs in a process of its own.
pub(super) fn check_only(
    entry: &file::Controller,
    controller: &Controller,
    others: &[Controller],
) -> Checked<()> {
    let is_external = |it: &Controller| matches!(it.kind, ControllerKind::External(_));
    if !is_external(controller) || !others.iter().any(is_external) {
        return Ok(());
    }
    let found = format!("a second controller of kind external, \"{}\"", controller.name);
    let remedy = "let one process control all of their axes";
    Err(Problem::new(Spanned::span(&entry.kind), found, "one at most", remedy))
}

const SHORTEST_DEADLINE: Duration = Duration::from_micros(10);

const MOST_LATE: i64 = 1000;
