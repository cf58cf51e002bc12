//! `[cycle]`

use std::time::Duration;

use ethercat::main_device::Configuration;
use toml::Spanned;

use super::{Checked, number};
use crate::Overrides;
use crate::description::{Cycle, Profile};
use crate::duration;
use crate::error::Problem;
use crate::file;

pub(super) fn cycle(cycle: &file::Cycle, overrides: Overrides) -> Checked<Cycle> {
    let period = overrides.period.unwrap_or(cycle.period.get_ref().0);
    within(
        "period",
        period,
        PERIODS,
        &cycle.period,
        "choose a period the bus and the machine can hold, as \"1ms\"",
    )?;
    let priority = number::optional_whole("priority", cycle.priority.as_ref(), 1..=99)?;
    let cpu = number::optional_whole("cpu", cycle.cpu.as_ref(), 0..=HIGHEST_CPU)?;
    let spin_margin = optional(
        "spin_margin",
        cycle.spin_margin.as_ref(),
        SPIN_MARGINS,
        "choose a little more than the machine's usual wake-up latency, as \"50us\"",
    )?;
    let reservation = (SHORTEST_RESERVATION, period);
    let deadline_runtime = optional(
        "deadline_runtime",
        cycle.deadline_runtime.as_ref(),
        reservation,
        "reserve what a cycle takes at most, and no more than the period",
    )?;
    let outage_time = optional(
        "outage_time",
        cycle.outage_time.as_ref(),
        (period, LONGEST_OUTAGE),
        "choose some periods, less than the drives' watchdogs wait, as \"20ms\"",
    )?;
    let loss_time = match &cycle.loss_time {
        None => Some(USUAL_LOSS),
        Some(value) => value.get_ref().0,
    };
    if let (Some(time), Some(value)) = (loss_time, &cycle.loss_time) {
        within(
            "loss_time",
            time,
            LOSSES,
            value,
            "choose how long a cable may be out, as \"10s\", or \"wait\"",
        )?;
    }
    Ok(Cycle {
        period,
        profile: profile(cycle)?,
        priority: priority.map_or(USUAL_PRIORITY, |priority| priority as u8),
        deadline_runtime,
        cpu: cpu.map(|cpu| cpu as usize),
        spin_margin: spin_margin.unwrap_or(USUAL_SPIN_MARGIN),
        overrun: cycle.overrun,
        frame_order: cycle.frame_order,
        outage_time,
        after_outage: cycle.after_outage,
        loss_time,
    })
}

/// Profile of the file; by default memory is locked, and P and S are on where the file gives their values.
fn profile(cycle: &file::Cycle) -> Checked<Profile> {
    let Some(letters) = &cycle.profile else {
        return Ok(Profile {
            priority: cycle.priority.is_some() || cycle.deadline_runtime.is_some(),
            memory: true,
            shield: false,
            spin: cycle.spin_margin.is_some(),
        });
    };
    letters.get_ref().parse().map_err(|_| {
        Problem::new(
            letters.span(),
            format!("profile = {:?}", letters.get_ref()),
            "letters of PMCS, each once, or \"none\"",
            "P is priority, M memory lock, C CPU shield, S spinning sleep, as in \"PM\"",
        )
    })
}

pub(super) fn optional(
    key: &str,
    value: Option<&Spanned<file::Length>>,
    range: (Duration, Duration),
    remedy: &str,
) -> Checked<Option<Duration>> {
    let check = |value: &Spanned<file::Length>| {
        let length = value.get_ref().0;
        within(key, length, range, value, remedy).map(|()| length)
    };
    value.map(check).transpose()
}

pub(super) fn within<T>(
    key: &str,
    length: Duration,
    (shortest, longest): (Duration, Duration),
    place: &Spanned<T>,
    remedy: &str,
) -> Checked<()> {
    if (shortest..=longest).contains(&length) {
        return Ok(());
    }
    Err(Problem::new(
        place.span(),
        format!("{key} {}", duration::format(length)),
        format!("{} to {}", duration::format(shortest), duration::format(longest)),
        remedy,
    ))
}

/// Shortest and longest period a cycle may have.
const PERIODS: (Duration, Duration) = (*Configuration::PERIODS.start(), *Configuration::PERIODS.end());

/// Shortest and longest margin of a spinning sleep.
const SPIN_MARGINS: (Duration, Duration) = (Duration::from_micros(1), Duration::from_secs(1));

/// Longest outage of an axis that may be configured.
const LONGEST_OUTAGE: Duration = Duration::from_secs(10);

/// Shortest and longest loss of the bus that may be configured.
const LOSSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(24 * 3600));

const USUAL_LOSS: Duration = Duration::from_secs(10);

const USUAL_SPIN_MARGIN: Duration = Duration::from_micros(50);

/// Shortest reservation of the kernel, sched(7).
const SHORTEST_RESERVATION: Duration = Duration::from_nanos(1024);

const USUAL_PRIORITY: u8 = 80;

/// Highest CPU number in the kernel's CPU sets.
pub(crate) const HIGHEST_CPU: i64 = 1023;
