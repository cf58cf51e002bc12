//! When SYNC0 starts.

use core::time::Duration;

use super::configuration::Sync0;

/// SYNC0 starts at least this long after it is armed: well after the write has arrived.
const SYNC0_LEAD: Duration = Duration::from_millis(20);

/// The same in cycles, where these are slow.
const SYNC0_LEAD_CYCLES: u32 = 10;

/// The first grid point of the reference clock far enough ahead, plus the shift.
pub(super) fn sync0_start(reference_time: u64, sync0: Sync0, period: Duration) -> u64 {
    let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let earliest = reference_time.wrapping_add(nanoseconds(SYNC0_LEAD.max(period * SYNC0_LEAD_CYCLES)));
    let cycle = nanoseconds(sync0.cycle).max(1);
    earliest.wrapping_add(cycle - earliest % cycle).wrapping_add(nanoseconds(sync0.shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync0_starts_on_the_grid_plus_shift_and_ahead() {
        let sync0 = Sync0 { cycle: Duration::from_millis(1), shift: Duration::from_micros(250) };
        let start = sync0_start(123_456_789, sync0, Duration::from_millis(1));
        assert_eq!(start % 1_000_000, 250_000);
        assert!(start > 123_456_789 + 20_000_000 && start <= 123_456_789 + 21_250_000);
        let slow = sync0_start(123_456_789, sync0, Duration::from_millis(100));
        assert!(slow > 123_456_789 + 1_000_000_000 && slow % 1_000_000 == 250_000);
    }
}
