//! The reference clock of the bus: its report, and the releases that follow it.

use super::Cycle;
use crate::observer::Happening;
use ethercat_linux::link::Link;
use rt::clock::Clock;
use rt::pacer::Release;

impl<L: Link, C: Clock> Cycle<L, C> {
    /// Moves the releases to come towards their place in the reference clock's periods.
    pub(super) fn follow_reference(&mut self, release: Release) {
        let sample = self.main_device.take_reference_sample();
        let epoch = self.main_device.configuration().system_time_at_epoch;
        self.status.reference.note(sample, epoch, types::time::nanoseconds(self.configuration.period));
        let start = self.bus_release(release);
        let Some(lock) = &mut self.lock else { return };
        let before = lock.report().state;
        let moved = lock.update(sample, start, release.skipped + 1);
        match &mut self.bus_time {
            Some(bus_time) => bus_time.shift(moved),
            None => self.pacer.shift(moved),
        }
        self.status.lock = lock.report();
        let (state, phase_error_ns) = (self.status.lock.state, self.status.lock.phase_error_ns);
        if state != before {
            self.tell(release.cycle, Happening::ClockLock { state, phase_error_ns });
        }
    }
}
