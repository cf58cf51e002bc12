//! `[cycle]`: values that depend on each other.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::Checked;
use crate::error::Problem;
use crate::field;
use crate::model::{Cycle, ResetFaults};
use crate::place::Place;

/// Checks times against the period.
pub(super) fn cycle(cycle: &Cycle, entry: Place<'_>) -> Checked<()> {
    if cycle.reset_faults == ResetFaults::None && !cycle.reset_codes.is_empty() {
        let expected = "reset_faults = \"communication\" with it".to_owned();
        let found = "reset_codes without reset_faults".to_owned();
        return Err(Problem::new(
            entry.key("reset_codes"),
            found,
            expected,
            "add it, or remove reset_codes",
        ));
    }
    if cycle.reset_codes.contains(&0) {
        let (found, expected) = ("reset_codes with 0".to_owned(), "error codes of 0x603F".to_owned());
        return Err(Problem::new(
            entry.key("reset_codes"),
            found,
            expected,
            "remove the 0: it is no error",
        ));
    }
    let period = cycle.period;
    let remedy = "choose a period the bus and the machine can hold, as \"1ms\"";
    within(entry, "period", Some(period), Cycle::PERIODS, remedy)?;
    let remedy = "reserve what a cycle takes at most, and no more than the period";
    within(entry, "deadline_runtime", cycle.deadline_runtime, SHORTEST_RESERVATION..=period, remedy)?;
    let remedy = "choose some periods, less than the drives' watchdogs wait, as \"20ms\"";
    within(entry, "outage_time", cycle.outage_time, period..=LONGEST_OUTAGE, remedy)
}

/// Checks the time under `key`, if there is one.
pub(super) fn within(
    entry: Place<'_>,
    key: &str,
    time: Option<Duration>,
    range: RangeInclusive<Duration>,
    remedy: &str,
) -> Checked<()> {
    let checked = time.map(|time| field::within(key, time, &range)).transpose();
    checked.map(|_| ()).map_err(|[found, expected]| Problem::new(entry.key(key), found, expected, remedy))
}

/// Longest outage of an axis that may be configured.
const LONGEST_OUTAGE: Duration = Duration::from_secs(10);

/// Shortest reservation of the kernel, sched(7).
const SHORTEST_RESERVATION: Duration = Duration::from_nanos(1024);
