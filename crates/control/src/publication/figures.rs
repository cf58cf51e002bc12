//! Figures of the cycle and its bus in a state, gathered cycle by cycle.

use ethercat::main_device::ReceptionCounters;
use ipc::state::{Bus, Clock, Spread, Timing};
use record::CycleRecord;

use crate::status::Status;

/// The timing of the cycle since its first cycle in Op.
#[derive(Debug, Default)]
pub(super) struct Figures {
    period_ns: u64,
    previous: Option<CycleRecord>,
    cycles: u64,
    wakeup_latency: Gathered,
    period_jitter: Gathered,
    execution: Gathered,
    overruns: u64,
    skipped: u64,
    last_overrun: u64,
    broken_cycles: u64,
}

impl Figures {
    pub(super) fn new(period_ns: u64) -> Self {
        Self { period_ns, ..Self::default() }
    }

    /// One more cycle in Op.
    pub(super) fn record(&mut self, record: &CycleRecord) {
        self.cycles += 1;
        self.wakeup_latency.add(record.wakeup_latency());
        self.execution.add(record.execution_time());
        if let Some(previous) = self.previous.replace(*record) {
            if let Some(jitter) = record.release_jitter(&previous, self.period_ns) {
                self.period_jitter.add(jitter);
            }
        }
        self.skipped += u64::from(record.skipped);
        self.broken_cycles += u64::from(!record.working_counter_ok);
        if record.overrun {
            self.overruns += 1;
            self.last_overrun = record.cycle;
        }
    }

    pub(super) fn timing(&self) -> Timing {
        Timing {
            cycles: self.cycles,
            wakeup_latency: self.wakeup_latency.spread(),
            period_jitter: self.period_jitter.spread(),
            execution: self.execution.spread(),
            overruns: self.overruns,
            skipped: self.skipped,
            last_overrun: self.last_overrun,
        }
    }

    pub(super) fn bus(&self, status: &Status) -> Bus {
        let ReceptionCounters { sent, accepted, lost, .. } = status.reception;
        Bus {
            phase: status.phase as u8,
            all_fresh: status.report.all_fresh,
            working_counter_errors: status.report.working_counter_errors,
            absent: status.sub_devices.iter().filter(|it| it.absent).count() as u16,
            frames_sent: sent,
            frames_accepted: accepted,
            frames_lost: lost,
            frames_rejected: status.reception.dropped(),
            broken_cycles: self.broken_cycles,
            clock_difference_ns: types::time::nanoseconds(status.clock_difference),
            link_errors: status.link_errors,
        }
    }
}

/// The reference clock, and the cycle against it.
pub(super) fn clock(status: &Status) -> Clock {
    let Status { lock, reference, .. } = status;
    Clock {
        lock: lock.state as u8,
        fresh: reference.fresh,
        difference_ns: reference.difference_ns,
        frame_phase_ns: reference.frame_phase_ns,
        phase_error_ns: lock.phase_error_ns,
        drift_ppb: lock.drift_ppb,
        losses: lock.losses,
    }
}

/// A spread in the making.
#[derive(Debug, Default)]
struct Gathered {
    spread: Spread,
    count: u64,
    /// Nanoseconds: 580 years of them.
    sum: u64,
}

impl Gathered {
    fn add(&mut self, ns: u64) {
        let Self { spread, count, sum } = self;
        spread.minimum_ns = if *count == 0 { ns } else { spread.minimum_ns.min(ns) };
        spread.maximum_ns = spread.maximum_ns.max(ns);
        spread.last_ns = ns;
        *count += 1;
        *sum = sum.saturating_add(ns);
        spread.mean_ns = *sum / *count;
    }

    fn spread(&self) -> Spread {
        self.spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_all_cycles() {
        let mut figures = Figures::new(1_000);
        assert_eq!(figures.timing(), Timing::default());
        for (cycle, late) in [(1, 30), (2, 10), (3, 50)] {
            let release = cycle * 1_000;
            let mut record = CycleRecord::begin(cycle, release, release + late);
            record.finish(record::Phase::Update, release + late + 100);
            record.overrun = cycle == 2;
            record.skipped = u32::from(cycle == 1) * 4;
            record.working_counter_ok = cycle != 3;
            figures.record(&record);
        }
        let timing = figures.timing();
        let latency = Spread { last_ns: 50, minimum_ns: 10, maximum_ns: 50, mean_ns: 30 };
        let jitter = Spread { last_ns: 40, minimum_ns: 20, maximum_ns: 40, mean_ns: 30 };
        assert_eq!((timing.cycles, timing.wakeup_latency, timing.period_jitter), (3, latency, jitter));
        assert_eq!((timing.overruns, timing.last_overrun, timing.execution.mean_ns), (1, 2, 100));
        assert_eq!(timing.skipped, 4);
        assert_eq!(figures.bus(&Status::initial(0, 0)).broken_cycles, 1);
    }

    #[test]
    fn whatever_was_dropped_was_rejected() {
        let mut status = Status::initial(0, 0);
        status.reception = ReceptionCounters {
            sent: 100,
            accepted: 90,
            lost: 10,
            late: 1,
            duplicate: 2,
            foreign: 3,
            truncated: 4,
            mismatched: 5,
            other_main_device: 6,
        };
        status.link_errors = 7;
        let bus = Figures::new(1_000).bus(&status);
        assert_eq!((bus.frames_sent, bus.frames_accepted, bus.frames_lost), (100, 90, 10));
        assert_eq!((bus.frames_rejected, bus.link_errors), (21, 7));
    }
}
