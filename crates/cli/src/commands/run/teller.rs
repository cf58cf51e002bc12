//! Tells everybody at the seam how the run goes, a few times a second.

use std::time::{Duration, Instant};

use bridge::diagnostics::{
    Conditions, Diagnostics, DisturbanceCounts, SpreadNs, TaskDiagnostics, WatchDiagnostics, Watched,
};
use bridge::seam::Door;
use machine::task::Counters;
use runtime::disturbance::CycleWatch;
use runtime::observer::Observer;
use timing::{RunConditions, RunSummary, Statistics};

use super::beside::TaskBeside;

/// How often.
const EVERY: Duration = Duration::from_millis(200);

/// Puts the document before its readers.
pub(super) struct Teller {
    door: Door,
    document: Diagnostics,
    told: Option<Instant>,
    beside: Vec<TaskBeside>,
}

impl Teller {
    /// At this door, of the cycle in this thread of ours.
    pub(super) fn new(door: Door, thread: i32, conditions: &RunConditions) -> Self {
        let cycle = TaskDiagnostics { name: "cycle".to_owned(), thread, ..TaskDiagnostics::default() };
        let document = Diagnostics {
            process: std::process::id(),
            tasks: vec![cycle],
            conditions: Conditions {
                kernel: conditions.kernel.clone(),
                link: conditions.link.clone(),
                profile_asked: conditions.profile.asked.clone(),
                profile_granted: conditions.profile.granted.clone(),
                cpu: conditions.cpu.granted,
            },
            warnings: conditions.warnings.clone(),
            ..Diagnostics::default()
        };
        Self { door, document, told: None, beside: Vec::new() }
    }

    /// Tells of these tasks beside the cycle, too.
    pub(super) fn with(self, beside: Vec<TaskBeside>) -> Self {
        Self { beside, ..self }
    }

    /// Tells how it stands, if it is time to.
    pub(super) fn look(
        &mut self,
        summary: &RunSummary,
        observer: &Observer,
        disturbances: Option<&CycleWatch>,
    ) {
        if self.told.is_some_and(|told| told.elapsed() < EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let document = &mut self.document;
        document.number += 1;
        document.ports = self.door.counters();
        document.watch = WatchDiagnostics {
            beats: summary.cycles(),
            dropped_records: observer.dropped_records(),
            dropped_events: observer.dropped_events(),
        };
        if let Some(cycle) = document.tasks.first_mut() {
            cycle.period_ns = summary.period_ns();
            cycle.jobs = summary.cycles();
            cycle.actual_period_ns = spread(&summary.actual_period);
            cycle.response_ns = spread(&summary.response_time);
            cycle.overruns = summary.overruns.count;
            cycle.disturbances = Counters::read(cycle.thread).map(|counted| DisturbanceCounts {
                voluntary_switches: counted.voluntary,
                involuntary_switches: counted.involuntary,
                minor_faults: counted.minor_faults,
                major_faults: counted.major_faults,
            });
            cycle.watched = disturbances.and_then(CycleWatch::read).as_ref().map(Watched::from);
        }
        document.tasks.truncate(1);
        document.tasks.extend(self.beside.iter().map(TaskBeside::now));
        if let Ok(text) = serde_json::to_string(document) {
            // A document too long leaves the one before: there is nobody to tell that to.
            let _ = self.door.diagnostics(&text);
        }
    }
}

fn spread(statistics: &Statistics) -> SpreadNs {
    SpreadNs {
        minimum: statistics.minimum().unwrap_or(0),
        mean: statistics.average().unwrap_or(0.0) as u64,
        maximum: statistics.maximum().unwrap_or(0),
    }
}
