//! Checks of the watchdogs of the SubDevices.

use std::time::Duration;

use super::Checked;
use crate::duration;
use crate::error::Problem;
use crate::model::SubDevice;
use crate::place::Place;
use ethercat::main_device::{LONGEST_WATCHDOG, Watchdog};

/// Least number of periods without outputs that a process data watchdog must tolerate: one frame is
/// lost now and then.
const FEWEST_PERIODS: u32 = 2;

/// Default number of periods where 100 ms hold fewer.
const PERIODS_BY_DEFAULT: u32 = 4;

/// Process data watchdog of a SubDevice that receives outputs `between` apart.
pub(super) fn process_data(watchdog: &mut Watchdog, between: Duration, entry: Place<'_>) -> Checked<()> {
    let key = "process_data_watchdog";
    if !entry.has(key) {
        let time = by_default(between);
        if time < between * FEWEST_PERIODS {
            let found = format!("outputs every {}", duration::format(between));
            let longest = duration::format(LONGEST_WATCHDOG / FEWEST_PERIODS);
            let expected = format!("every {longest} or more often, for a watchdog of two periods");
            let remedy = "lower every, or set process_data_watchdog = \"off\"";
            return Err(Problem::new(entry.key("every"), found, expected, remedy));
        }
        *watchdog = Watchdog::After(time);
        return Ok(());
    }
    let why = format!("two periods of {}", duration::format(between));
    check(key, *watchdog, between * FEWEST_PERIODS, &why, entry)
}

/// Process data watchdog of a SubDevice with outputs sent `between` apart, if the file has none.
pub(crate) fn by_default(between: Duration) -> Duration {
    let default = Watchdog::default().time().unwrap_or_default();
    default.max(between * PERIODS_BY_DEFAULT).min(LONGEST_WATCHDOG)
}

/// Checks that the drive of an axis has a process data watchdog: without one it continues without
/// frames.
pub(super) fn of_axis(axis: &str, drive: &SubDevice, place: Place<'_>) -> Checked<()> {
    if drive.process_data_watchdog.time().is_some() {
        return Ok(());
    }
    let found = format!("axis \"{axis}\" on \"{}\" with process_data_watchdog = \"off\"", drive.name);
    let expected = "a drive that stops by itself when this computer or the cable fails";
    let remedy = "give that SubDevice a time, as process_data_watchdog = \"100ms\"";
    Err(Problem::new(place, found, expected, remedy))
}

/// PDI watchdog of a SubDevice, if the file has one.
pub(super) fn pdi(watchdog: Option<Watchdog>, entry: Place<'_>) -> Checked<()> {
    let shortest = Duration::from_micros(1);
    let watchdog = watchdog.unwrap_or(Watchdog::Off);
    check("pdi_watchdog", watchdog, shortest, &duration::format(shortest), entry)
}

fn check(key: &str, watchdog: Watchdog, shortest: Duration, why: &str, entry: Place<'_>) -> Checked<()> {
    let Some(time) = watchdog.time().filter(|time| !(shortest..=LONGEST_WATCHDOG).contains(time)) else {
        return Ok(());
    };
    let found = format!("{key} = {}", duration::format(time));
    let expected = format!("{why} to {}, or \"off\"", duration::format(LONGEST_WATCHDOG));
    Err(Problem::new(entry.key(key), found, expected, "choose another time"))
}
