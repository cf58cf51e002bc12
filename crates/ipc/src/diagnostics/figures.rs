//! Figures of a run since its first cycle in Op, and counts of its events.

use serde::{Deserialize, Serialize};

use crate::bus::{Event, Happening, Severity};
use crate::state::Spread;

/// Bounds of a [`Histogram`], ns: 1, 2, 5 and so on from a microsecond to 10 ms.
pub const BOUNDS: [u64; 13] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000,
    5_000_000, 10_000_000,
];

/// Figures of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Cycles measured, in Op.
    pub cycles: u64,
    /// Cycles that ended after the next release.
    pub overruns: u64,
    /// Releases without a cycle.
    pub skipped_releases: u64,
    /// Frames that did not come back in time.
    pub lost_frames: u64,
    /// Cycles with a wrong working counter.
    pub working_counter_errors: u64,
    /// Cycles that ran and are missing in these figures.
    pub dropped_records: u64,
    /// Distance of the actual period from the period.
    pub release_jitter: Histogram,
    /// Release to start.
    pub wakeup_latency: Histogram,
    /// Start to end of a cycle's work.
    pub execution_time: Histogram,
    /// Release to end.
    pub response_time: Histogram,
    /// True if the bus is in Op and axes wait to be enabled by a person.
    pub waits_for_enable: bool,
    /// True while the ring of SubDevices is closed; none for a line.
    pub ring_closed: Option<bool>,
    /// Events since the start.
    pub events: EventCounts,
}

/// Samples of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Histogram {
    /// Samples up to each of [`BOUNDS`].
    pub up_to: [u64; BOUNDS.len()],
    /// All samples.
    pub count: u64,
    /// Their sum, s.
    pub sum_seconds: f64,
}

/// Smallest, mean and largest of a time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpreadNs {
    /// Smallest.
    pub minimum: u64,
    /// Mean.
    pub mean: u64,
    /// Largest.
    pub maximum: u64,
}

impl From<Spread> for SpreadNs {
    fn from(spread: Spread) -> Self {
        Self { minimum: spread.minimum_ns, mean: spread.mean_ns, maximum: spread.maximum_ns }
    }
}

/// Events since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCounts {
    /// Events that report no trouble.
    pub ok: u64,
    /// Warnings.
    pub warning: u64,
    /// Errors.
    pub error: u64,
    /// Emergency messages of SubDevices.
    pub emergencies: u64,
    /// Faults of the drive of each axis.
    pub axis_faults: Vec<u64>,
    /// Stops of each axis by supervision.
    pub axis_stops: Vec<u64>,
}

impl EventCounts {
    /// Counts of a robot with this number of axes.
    #[must_use]
    pub fn of(axes: usize) -> Self {
        Self { axis_faults: vec![0; axes], axis_stops: vec![0; axes], ..Self::default() }
    }

    /// Counts an event.
    pub fn add(&mut self, event: &Event) {
        *match event.severity {
            Severity::Ok => &mut self.ok,
            Severity::Warning => &mut self.warning,
            Severity::Error => &mut self.error,
        } += 1;
        let of_axis = |counts: &mut [u64], axis: usize| {
            counts.get_mut(axis).into_iter().for_each(|count| *count += 1);
        };
        match &event.what {
            &Happening::DriveFault { axis, .. } => of_axis(&mut self.axis_faults, axis),
            &Happening::AxisStopped { axis, .. } => of_axis(&mut self.axis_stops, axis),
            Happening::Emergency { .. } => self.emergencies += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_severity_and_axis() {
        let mut counts = EventCounts::of(2);
        let mut add = |severity, what| {
            counts.add(&Event {
                cycle: 1,
                at_ns: 1,
                severity,
                sentence: String::new(),
                between: None,
                what,
            });
        };
        let fault = |axis| Happening::DriveFault { axis, position: 0, error_code: 0x7500 };
        add(Severity::Error, fault(1));
        add(Severity::Error, fault(7));
        assert_eq!((counts.error, counts.warning), (2, 0));
        assert_eq!((counts.axis_faults, counts.axis_stops), (vec![0, 1], vec![0, 0]));
    }
}
