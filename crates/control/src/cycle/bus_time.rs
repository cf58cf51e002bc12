//! Time of the bus: the host's for SubDevices on a wire; for SubDevices in this process, the number
//! of cycles times the period.

use std::time::Duration;

use ethercat::main_device::BringUpPhase;
use ethercat::time::Instant;

use super::Cycle;
use super::stalls::SimulationTime;
use ethercat_linux::link::Link;
use rt::clock::{Clock, VirtualClock};
use rt::pacer::Release;

/// Bus time of SubDevices in this process. A stall of the host does not affect the bus: each cycle
/// is one period after the last.
#[derive(Debug)]
pub(super) struct BusTime {
    clock: VirtualClock,
    /// Bus time at the start of the cycle.
    release: Instant,
    /// Shift of the next cycle by the lock to the reference clock, ns.
    shift: i64,
    simulation: SimulationTime,
}

impl BusTime {
    /// Moves to the next cycle. A wait for replies longer than a period, before Op, delays it.
    fn begin(&mut self, period: Duration) {
        let next =
            (self.release + period).as_nanos().saturating_add_signed(std::mem::take(&mut self.shift));
        self.clock.sleep_until(Instant::from_nanos(next));
        self.release = self.clock.now();
    }

    pub(super) fn shift(&mut self, nanoseconds: i64) {
        self.shift = nanoseconds;
    }

    pub(super) fn clock(&self) -> &VirtualClock {
        &self.clock
    }
}

impl<L: Link, C: Clock> Cycle<L, C> {
    /// The same for SubDevices in this process that use `clock`, which the cycle moves from now on:
    /// one period a cycle, however long the host takes. Releases that the host misses are neither
    /// skipped nor made up.
    #[must_use]
    pub fn with_bus_time(self, clock: VirtualClock) -> Self {
        let release = clock.now();
        let bus_time = Some(BusTime { clock, release, shift: 0, simulation: SimulationTime::default() });
        Self { pacer: self.pacer.with_slips(), bus_time, ..self }
    }

    /// Moves the bus to the next cycle, while the record is still of the last one.
    pub(super) fn begin_bus_time(&mut self) {
        let period = self.configuration.period;
        let simulation = Duration::from_nanos(self.record.simulation_ns.into());
        if let Some(bus_time) = &mut self.bus_time {
            bus_time.begin(period);
            bus_time.simulation.take(simulation);
        }
    }

    /// Bus time at the start of this cycle.
    pub(super) fn bus_release(&self, release: Release) -> Instant {
        self.bus_time.as_ref().map_or(release.instant, |it| it.release)
    }

    /// Bus time now; on a wire, the clock as it was read last.
    pub(super) fn bus_now(&self) -> Instant {
        self.bus_time.as_ref().map_or_else(|| self.now(), |it| it.clock.now())
    }

    /// Whole periods of the bus between the starts of the last cycle and of this one, beyond the
    /// expected one.
    pub(super) fn bus_stalled(&mut self) -> u64 {
        let (since_last, period) = (self.since_last(), self.configuration.period);
        let Some(bus_time) = &self.bus_time else {
            let periods = since_last.as_nanos() / period.as_nanos().max(1);
            return u64::try_from(periods.saturating_sub(1)).unwrap_or(u64::MAX);
        };
        if self.main_device.phase() == BringUpPhase::Op {
            self.host_stalls.note(since_last.saturating_sub(bus_time.simulation.last), period);
        }
        0
    }

    /// Time between the starts of the last cycle and of this one.
    fn since_last(&mut self) -> Duration {
        let now = Instant::from_nanos(self.record.start_ns);
        now.since(self.begun.replace(now).unwrap_or(now))
    }
}
