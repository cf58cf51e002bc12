//! Checks of the watchdogs of the SubDevices.

use std::time::Duration;

use ethercat::main_device::{LONGEST_WATCHDOG, Watchdog};
use toml::Spanned;

use super::Checked;
use crate::duration;
use crate::error::Problem;
use crate::file;
use crate::model::Cycle;

/// Least number of periods without outputs that a process data watchdog must tolerate: one frame is lost
/// now and then.
const FEWEST_PERIODS: u32 = 2;

/// Default number of periods where 100 ms hold fewer.
const PERIODS_BY_DEFAULT: u32 = 4;

/// Process data watchdog.
pub(super) fn process_data(watchdog: Option<&Spanned<file::Watchdog>>, cycle: &Cycle) -> Checked<Watchdog> {
    let Some(watchdog) = watchdog else {
        let default = Watchdog::default().time().unwrap_or_default();
        return Ok(Watchdog::After(default.max(cycle.period * PERIODS_BY_DEFAULT)));
    };
    let shortest = cycle.period * FEWEST_PERIODS;
    let why = format!("two periods of {}", duration::format(cycle.period));
    checked("process_data_watchdog", watchdog, shortest, &why)
}

/// PDI watchdog, if the file has one.
pub(super) fn pdi(watchdog: Option<&Spanned<file::Watchdog>>) -> Checked<Option<Watchdog>> {
    let shortest = Duration::from_micros(1);
    let checked = |it| checked("pdi_watchdog", it, shortest, &duration::format(shortest));
    watchdog.map(checked).transpose()
}

fn checked(
    key: &str,
    watchdog: &Spanned<file::Watchdog>,
    shortest: Duration,
    why: &str,
) -> Checked<Watchdog> {
    let Some(time) = watchdog.get_ref().0 else { return Ok(Watchdog::Off) };
    if (shortest..=LONGEST_WATCHDOG).contains(&time) {
        return Ok(Watchdog::After(time));
    }
    let found = format!("{key} = {}", duration::format(time));
    let expected = format!("{why} to {}, or \"off\"", duration::format(LONGEST_WATCHDOG));
    Err(Problem::new(watchdog.span(), found, expected, "choose another time"))
}
