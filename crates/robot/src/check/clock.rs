//! Checks of SYNC0 of the distributed clocks.

use std::time::Duration;

use ethercat::main_device::Sync0;

use super::Checked;
use crate::duration;
use crate::error::Problem;
use crate::model::{Cycle, DistributedClock};
use crate::source::Place;

pub(super) fn sync0(
    clock: &DistributedClock,
    distributed_clocks: bool,
    cycle: &Cycle,
    place: Place<'_>,
) -> Checked<Sync0> {
    if !distributed_clocks {
        let remedy = "set distributed_clocks = true in [bus] or remove dc";
        return Err(Problem::new(place, "dc on a bus without distributed clocks", "them on", remedy));
    }
    let DistributedClock { sync0, shift } = *clock;
    let sync0 = sync0.unwrap_or(cycle.period);
    check_sync0(sync0, place.key("sync0"), cycle)?;
    if shift >= sync0 {
        let found = format!("shift = {}", duration::format(shift));
        let expected = format!("less than SYNC0's {}", duration::format(sync0));
        return Err(Problem::new(place.key("shift"), found, expected, "shorten the shift"));
    }
    Ok(Sync0 { cycle: sync0, shift })
}

fn check_sync0(sync0: Duration, place: Place<'_>, cycle: &Cycle) -> Checked<()> {
    let (pulse, period) = (sync0.as_nanos(), cycle.period.as_nanos());
    let fits = pulse != 0 && u32::try_from(pulse).is_ok() && (pulse % period == 0 || period % pulse == 0);
    fits.then_some(()).ok_or_else(|| {
        let found = format!("sync0 = {}", duration::format(sync0));
        let expected =
            format!("a multiple or a whole fraction of the period {}", duration::format(cycle.period));
        Problem::new(place, found, expected, "correct sync0, or leave it out to follow the period")
    })
}
