//! Checks of SYNC0 of the distributed clocks.

use std::ops::Range;
use std::time::Duration;

use ethercat::main_device::Sync0;
use toml::Spanned;

use super::Checked;
use crate::duration;
use crate::error::Problem;
use crate::file;
use crate::model::Cycle;

pub(super) fn sync0(
    clock: &Spanned<file::DistributedClock>,
    distributed_clocks: bool,
    cycle: &Cycle,
) -> Checked<Sync0> {
    if !distributed_clocks {
        let remedy = "set distributed_clocks = true in [bus] or remove dc";
        return Err(Problem::new(
            clock.span(),
            "dc on a bus without distributed clocks",
            "them on",
            remedy,
        ));
    }
    let place = |value: Option<&Spanned<file::Length>>| value.map_or(clock.span(), Spanned::span);
    let file::DistributedClock { sync0, shift } = clock.get_ref();
    let sync0_place = place(sync0.as_ref());
    let shift_place = place(shift.as_ref());
    let sync0 = sync0.as_ref().map_or(cycle.period, |it| it.get_ref().0);
    let shift = shift.as_ref().map_or(Duration::ZERO, |it| it.get_ref().0);
    check_sync0(sync0, sync0_place, cycle)?;
    if shift >= sync0 {
        let found = format!("shift = {}", duration::format(shift));
        let expected = format!("less than SYNC0's {}", duration::format(sync0));
        return Err(Problem::new(shift_place, found, expected, "shorten the shift"));
    }
    Ok(Sync0 { cycle: sync0, shift })
}

fn check_sync0(sync0: Duration, place: Range<usize>, cycle: &Cycle) -> Checked<()> {
    let (pulse, period) = (sync0.as_nanos(), cycle.period.as_nanos());
    let fits = pulse != 0 && u32::try_from(pulse).is_ok() && (pulse % period == 0 || period % pulse == 0);
    fits.then_some(()).ok_or_else(|| {
        let found = format!("sync0 = {}", duration::format(sync0));
        let expected =
            format!("a multiple or a whole fraction of the period {}", duration::format(cycle.period));
        Problem::new(place, found, expected, "correct sync0, or leave it out to follow the period")
    })
}
