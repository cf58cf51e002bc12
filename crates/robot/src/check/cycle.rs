//! `[cycle]`: values that depend on each other.
//!
//! Checks of SYNC0, SYNC1 and latch inputs of the distributed clocks.

use std::ops::RangeInclusive;
use std::time::Duration;

use ethercat::main_device::{Oversampling, Sync0, Sync1};
use types::CycleClock;
use types::duration;

use super::Checked;
use crate::error::Problem;
use crate::field;
use crate::field::Place;
use crate::model::{Cycle, DistributedClock, ResetFaults};

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

/// Checks that the clock that the cycle follows, or steers, is kept.
pub(super) fn followed(cycle: &Cycle, distributed_clocks: bool, place: Place<'_>) -> Checked<()> {
    if cycle.clock == CycleClock::Own || distributed_clocks {
        return Ok(());
    }
    let found = format!("clock = \"{}\" on a bus without distributed clocks", cycle.clock.name());
    let remedy = "set distributed_clocks = true in [bus] or remove clock";
    Err(Problem::new(place.key("clock"), found, "a bus with distributed clocks", remedy))
}

/// SYNC0; by default once for each exchange of the process data, the time `between` two of them.
pub(super) fn sync0(
    clock: &DistributedClock,
    distributed_clocks: bool,
    (cycle, between): (&Cycle, Duration),
    place: Place<'_>,
) -> Checked<Sync0> {
    kept("dc", distributed_clocks, place)?;
    let DistributedClock { sync0, shift, oversampling, .. } = *clock;
    let sync0 = match oversampling {
        Some(samples) => sampled(samples, between, place)?,
        None => sync0.unwrap_or(between),
    };
    if oversampling.is_none() {
        check_sync0(sync0, place.key("sync0"), cycle)?;
    }
    if shift >= sync0 {
        let found = format!("shift = {}", duration::format(shift));
        let expected = format!("less than SYNC0's {}", duration::format(sync0));
        return Err(Problem::new(place.key("shift"), found, expected, "shorten the shift"));
    }
    Ok(Sync0 { cycle: sync0, shift })
}

/// Time from one of `samples` to the next, which is the cycle of SYNC0: SYNC1 rises once for each
/// exchange of the process data.
fn sampled(samples: u8, between: Duration, place: Place<'_>) -> Checked<Duration> {
    if let Some(key) = ["sync0", "sync1"].into_iter().find(|key| place.has(key)) {
        let found = format!("{key} together with oversampling = {samples}");
        let expected = "one of the two: oversampling gives SYNC0 and SYNC1 their cycles";
        return Err(Problem::new(place.key(key), found, expected, format!("remove {key}")));
    }
    let sync0 = between / u32::from(samples);
    if sync0 * u32::from(samples) == between && Sync0::CYCLES.contains(&sync0) {
        return Ok(sync0);
    }
    let found = format!("oversampling = {samples}");
    let expected = format!(
        "a factor that divides the {} from one exchange of the process data to the next into times of whole ns, 1us at least",
        duration::format(between)
    );
    Err(Problem::new(place.key("oversampling"), found, expected, "choose another, as 2, 4, 5, 8 or 10"))
}

/// Samples of a channel in one exchange of the process data, if there are several.
pub(super) fn oversampling(clock: &DistributedClock, place: Place<'_>) -> Checked<Option<Oversampling>> {
    let pdos = clock.samples.clone();
    match clock.oversampling {
        Some(samples) => Ok(Some(Oversampling { samples, pdos })),
        None if pdos.is_empty() => Ok(None),
        None => {
            let expected = "oversampling, how many samples these PDOs hold";
            Err(Problem::new(place.key("samples"), "samples without oversampling", expected, "add it"))
        }
    }
}

/// Checks that the bus has its distributed clocks on for `key`.
pub(super) fn kept(key: &str, distributed_clocks: bool, place: Place<'_>) -> Checked<()> {
    if distributed_clocks {
        return Ok(());
    }
    let remedy = format!("set distributed_clocks = true in [bus] or remove {key}");
    let found = format!("{key} on a bus without distributed clocks");
    Err(Problem::new(place, found, "them on", remedy))
}

/// SYNC1, if one of its keys is given.
pub(super) fn sync1(clock: &DistributedClock, sync0: Sync0, place: Place<'_>) -> Checked<Option<Sync1>> {
    let block = clock.oversampling.map(|samples| sync0.cycle * u32::from(samples));
    if clock.sync1.is_none() && clock.sync1_delay.is_none() && block.is_none() {
        return Ok(None);
    }
    let cycle = block.or(clock.sync1).unwrap_or(sync0.cycle);
    let delay = clock.sync1_delay.unwrap_or_default();
    let own = duration::format(sync0.cycle);
    if cycle.is_zero() || cycle.as_nanos() % sync0.cycle.as_nanos() != 0 || !Sync0::CYCLES.contains(&cycle)
    {
        let found = format!("sync1 = {}", duration::format(cycle));
        let expected = format!("a multiple of SYNC0's {own}, up to 4s");
        let remedy = "correct sync1, or leave it out for SYNC1 with every SYNC0";
        return Err(Problem::new(place.key("sync1"), found, expected, remedy));
    }
    if delay >= sync0.cycle {
        let found = format!("sync1_delay = {}", duration::format(delay));
        let expected = format!("less than SYNC0's {own}");
        let remedy = "shorten it, or let SYNC1 come more seldom by sync1";
        return Err(Problem::new(place.key("sync1_delay"), found, expected, remedy));
    }
    Ok(Some(Sync1 { cycle, delay }))
}

fn check_sync0(sync0: Duration, place: Place<'_>, cycle: &Cycle) -> Checked<()> {
    let (pulse, period) = (sync0.as_nanos(), cycle.period.as_nanos());
    if !Sync0::CYCLES.contains(&sync0) {
        let found = format!("sync0 = {}", duration::format(sync0));
        return Err(Problem::new(place, found, "1us to 4s", "give another sync0, or a smaller every"));
    }
    let fits = pulse % period == 0 || period % pulse == 0;
    fits.then_some(()).ok_or_else(|| {
        let found = format!("sync0 = {}", duration::format(sync0));
        let expected =
            format!("a multiple or a whole fraction of the period {}", duration::format(cycle.period));
        Problem::new(place, found, expected, "correct sync0, or leave it out to follow the period")
    })
}
