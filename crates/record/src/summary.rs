//! Statistics of a whole run.

use serde::{Serialize, Serializer};

use crate::record::CycleRecord;
use crate::statistics::Statistics;

/// Count of an event, and the first and last cycle with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Occurrences {
    /// Number of events; several in one cycle count each.
    pub count: u64,
    /// First cycle with the event.
    pub first_cycle: Option<u64>,
    /// Last cycle with the event.
    pub last_cycle: Option<u64>,
}

impl Occurrences {
    /// Adds `times` events in `cycle`.
    pub fn record(&mut self, times: u64, cycle: u64) {
        if times > 0 {
            self.count = self.count.saturating_add(times);
            self.first_cycle.get_or_insert(cycle);
            self.last_cycle = Some(cycle);
        }
    }
}

/// Statistics of a run, gathered record by record on the non-real-time side.
#[derive(Clone, Debug)]
pub struct RunSummary {
    period_ns: u64,
    previous: Option<CycleRecord>,
    cycles: u64,
    /// `T_period`: start to start.
    pub actual_period: Statistics,
    /// `T_jitter`: distance of the actual period from the period.
    pub release_jitter: Statistics,
    /// `T_exec`: collect, process, transmit.
    pub execution_time: Statistics,
    /// Release to start.
    pub wakeup_latency: Statistics,
    /// Release to end.
    pub response_time: Statistics,
    /// Time of SubDevices simulated in the cycle's thread, for cycles with any; no other time
    /// includes it.
    pub simulation_time: Statistics,
    /// Cycles with a wrong working counter.
    pub working_counter_errors: Occurrences,
    /// Frames that never came back.
    pub lost_frames: Occurrences,
    /// Cycles that ended after the next release.
    pub overruns: Occurrences,
    /// Skipped releases.
    pub skipped_releases: Occurrences,
    /// Records that were dropped: the cycle ran, its numbers are missing.
    pub dropped_records: Occurrences,
}

impl RunSummary {
    /// Summary of a run with this period, before its first record.
    #[must_use]
    pub fn new(period_ns: u64) -> Self {
        Self {
            period_ns,
            previous: None,
            cycles: 0,
            actual_period: Statistics::new(),
            release_jitter: Statistics::new(),
            execution_time: Statistics::new(),
            wakeup_latency: Statistics::new(),
            response_time: Statistics::new(),
            simulation_time: Statistics::new(),
            working_counter_errors: Occurrences::default(),
            lost_frames: Occurrences::default(),
            overruns: Occurrences::default(),
            skipped_releases: Occurrences::default(),
            dropped_records: Occurrences::default(),
        }
    }

    /// Adds a cycle. Records come in the order of their cycles.
    pub fn record(&mut self, record: &CycleRecord) {
        let cycle = record.cycle;
        self.cycles += 1;
        if let Some(previous) = self.previous.replace(*record) {
            if let Some(period) = record.actual_period(&previous) {
                self.actual_period.record(period, cycle);
                self.release_jitter.record(period.abs_diff(self.period_ns), cycle);
            }
            let seen = previous.cycle.saturating_add(1 + u64::from(record.skipped));
            self.dropped_records.record(cycle.saturating_sub(seen), cycle);
        }
        self.execution_time.record(record.execution_time(), cycle);
        self.wakeup_latency.record(record.wakeup_latency(), cycle);
        self.response_time.record(record.response_time(), cycle);
        if record.simulation_ns > 0 {
            self.simulation_time.record(record.simulation_ns.into(), cycle);
        }
        self.working_counter_errors.record(u64::from(!record.working_counter_ok), cycle);
        self.lost_frames.record(u64::from(record.lost_frames), cycle);
        self.overruns.record(u64::from(record.overrun), cycle);
        self.skipped_releases.record(u64::from(record.skipped), cycle);
    }

    /// Requested period, ns.
    #[must_use]
    pub const fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Number of records so far.
    #[must_use]
    pub const fn cycles(&self) -> u64 {
        self.cycles
    }
}

/// Serialises as one object: `cycles`, `period_ns`, `t_period_ns`, `t_jitter_ns`, `t_exec_ns`,
/// `wakeup_latency_ns`, `response_time_ns`, on a simulated bus `simulation_ns`, the counts, and
/// under `first_cycle_of` the first cycle of each count.
impl Serialize for RunSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RunSummaryFigures {
            cycles: self.cycles,
            period_ns: self.period_ns,
            t_period_ns: &self.actual_period,
            t_jitter_ns: &self.release_jitter,
            t_exec_ns: &self.execution_time,
            wakeup_latency_ns: &self.wakeup_latency,
            response_time_ns: &self.response_time,
            simulation_ns: (self.simulation_time.count() > 0).then_some(&self.simulation_time),
            working_counter_errors: self.working_counter_errors.count,
            lost_frames: self.lost_frames.count,
            overruns: self.overruns.count,
            skipped_releases: self.skipped_releases.count,
            dropped_records: self.dropped_records.count,
            first_cycle_of: FirstCycles {
                working_counter_errors: self.working_counter_errors.first_cycle,
                lost_frames: self.lost_frames.first_cycle,
                overruns: self.overruns.first_cycle,
                skipped_releases: self.skipped_releases.first_cycle,
                dropped_records: self.dropped_records.first_cycle,
            },
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct RunSummaryFigures<'a> {
    cycles: u64,
    period_ns: u64,
    t_period_ns: &'a Statistics,
    t_jitter_ns: &'a Statistics,
    t_exec_ns: &'a Statistics,
    wakeup_latency_ns: &'a Statistics,
    response_time_ns: &'a Statistics,
    #[serde(skip_serializing_if = "Option::is_none")]
    simulation_ns: Option<&'a Statistics>,
    working_counter_errors: u64,
    lost_frames: u64,
    overruns: u64,
    skipped_releases: u64,
    dropped_records: u64,
    first_cycle_of: FirstCycles,
}

#[derive(Serialize)]
struct FirstCycles {
    working_counter_errors: Option<u64>,
    lost_frames: Option<u64>,
    overruns: Option<u64>,
    skipped_releases: Option<u64>,
    dropped_records: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Phase;

    fn one_cycle(cycle: u64, latency: u64) -> CycleRecord {
        let release = cycle * 1_000_000;
        let mut record = CycleRecord::begin(cycle, release, release + latency);
        record.finish(Phase::Receive, release + latency + 5_000);
        record
    }

    #[test]
    fn what_went_wrong_is_counted_with_its_cycles() {
        let mut summary = RunSummary::new(1_000_000);
        summary.record(&one_cycle(0, 0));
        summary.record(&CycleRecord { working_counter_ok: false, lost_frames: 2, ..one_cycle(1, 0) });
        summary.record(&CycleRecord { lost_frames: 1, overrun: true, ..one_cycle(2, 0) });
        summary.record(&CycleRecord { skipped: 1, ..one_cycle(4, 0) });
        summary.record(&one_cycle(8, 0));
        let occurred =
            |count, first, last| Occurrences { count, first_cycle: Some(first), last_cycle: Some(last) };
        assert_eq!(summary.working_counter_errors, occurred(1, 1, 1));
        assert_eq!(summary.lost_frames, occurred(3, 1, 2));
        assert_eq!(summary.overruns, occurred(1, 2, 2));
        assert_eq!(summary.skipped_releases, occurred(1, 4, 4));
        assert_eq!(summary.dropped_records, occurred(3, 8, 8));
        assert_eq!((summary.cycles(), summary.actual_period.count()), (5, 3), "none across the gap");
        assert_eq!(summary.actual_period.maximum(), Some(2_000_000), "the skipped release shows");
    }

    #[test]
    fn jitter_is_the_distance_from_the_period_either_way() {
        let mut summary = RunSummary::new(1_000_000);
        for (cycle, latency) in [(0, 10_000), (1, 40_000), (2, 5_000)] {
            summary.record(&one_cycle(cycle, latency));
        }
        assert_eq!(
            (summary.release_jitter.minimum(), summary.release_jitter.maximum()),
            (Some(30_000), Some(35_000))
        );
        assert_eq!(summary.wakeup_latency.maximum_cycle(), Some(1));
        assert_eq!(
            (summary.execution_time.average(), summary.response_time.maximum()),
            (Some(5e3), Some(45_000))
        );
    }

    #[test]
    fn json_holds_the_names_scripts_read() {
        let mut summary = RunSummary::new(1_000_000);
        summary.record(&one_cycle(0, 0));
        summary.record(&CycleRecord { lost_frames: 1, ..one_cycle(1, 0) });
        let json = serde_json::to_value(&summary).unwrap();
        for name in ["t_period_ns", "t_jitter_ns", "t_exec_ns"] {
            for number in ["average", "maximum", "minimum", "standard_deviation"] {
                assert!(json[name][number].is_number(), "{name}.{number} in {json}");
            }
        }
        for (name, want) in
            [("cycles", 2), ("period_ns", 1_000_000), ("working_counter_errors", 0), ("lost_frames", 1)]
        {
            assert_eq!(json[name].as_u64(), Some(want), "{name}");
        }
        assert_eq!(json["first_cycle_of"]["lost_frames"].as_u64(), Some(1));
    }
}
