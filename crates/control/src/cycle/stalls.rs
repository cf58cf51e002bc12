//! Stalls of the host that a bus in this process does not see.

use std::time::Duration;

/// Host stalls of a bus in this process: a cycle began a period or more after it should have. The
/// bus waited for it. The time of the simulated SubDevices is no stall.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStalls {
    /// Number of stalls.
    pub count: u64,
    /// The longest delay of such a cycle.
    pub longest: Duration,
    /// Cycles before which a watchdog of [`USUAL_WATCHDOG`] would have expired on a wire.
    pub beyond_watchdog: u64,
}

/// Process data watchdog of most drives, from the reset values of 0x0400 and 0x0420 (ETG.1000.4).
pub const USUAL_WATCHDOG: Duration = Duration::from_millis(100);

impl HostStalls {
    /// A cycle that began so long after the one before, without the simulation.
    pub(super) fn note(&mut self, since_last: Duration, period: Duration) {
        let late = since_last.saturating_sub(period);
        if late >= period {
            self.count += 1;
            self.longest = self.longest.max(late);
            self.beyond_watchdog += u64::from(since_last > USUAL_WATCHDOG);
        }
    }
}

/// Time that the SubDevices in this process take of a cycle. It does not count as a stall.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SimulationTime {
    mean: Duration,
    /// Time of the last cycle.
    pub(super) last: Duration,
}

impl SimulationTime {
    /// Takes the measured time of a cycle. What exceeds four times the mean is a stall in it.
    pub(super) fn take(&mut self, measured: Duration) {
        if self.mean.is_zero() {
            self.mean = measured;
        }
        self.last = measured.min(self.mean * 4);
        self.mean = (self.mean * 63 + self.last) / 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_in_the_simulation_is_no_simulation_time() {
        let mut time = SimulationTime::default();
        let last = [400, 1_200, 500_000, 400].map(|microseconds| {
            time.take(Duration::from_micros(microseconds));
            time.last
        });
        assert_eq!(last[..2], [Duration::from_micros(400), Duration::from_micros(1_200)]);
        assert!(last[2] < Duration::from_millis(2), "{last:?}");
        assert_eq!(last[3], Duration::from_micros(400));
    }

    #[test]
    fn cycles_that_begin_late_are_counted_with_the_longest_delay() {
        let mut stalls = HostStalls::default();
        for microseconds in [1_000, 1_999, 2_000, 100_000, 100_001, 500] {
            stalls.note(Duration::from_micros(microseconds), Duration::from_millis(1));
        }
        let longest = Duration::from_micros(99_001);
        assert_eq!(stalls, HostStalls { count: 3, longest, beyond_watchdog: 1 });
    }
}
