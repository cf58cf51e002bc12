//! Writes the diagnostics of the run to the IPC, a few times a second.

use std::time::{Duration, Instant};

use control::observer::Observer;
use control::status::Status;
use ipc::diagnostics::{BOUNDS, Conditions, Diagnostics, Figures, Histogram, WatchDiagnostics};
use ipc::server::Server;
use record::statistics::Statistics;
use record::{RunConditions, RunSummary};

use super::bus::BusServer;
use super::diagnosis::Diagnostician;
use super::tasks::Tasks;

/// Interval.
const EVERY: Duration = Duration::from_millis(200);

/// Puts the document before its readers.
pub(super) struct DiagnosticsWriter {
    server: Server,
    document: Diagnostics,
    written: Option<Instant>,
}

impl DiagnosticsWriter {
    /// At this server.
    pub(super) fn new(server: Server, conditions: &RunConditions) -> Self {
        let document = Diagnostics {
            process: std::process::id(),
            conditions: Conditions {
                kernel: conditions.common.kernel.clone(),
                link: conditions.link.clone(),
                profile_requested: conditions.profile.requested.clone(),
                profile_granted: conditions.profile.granted.clone(),
                cpu: conditions.cpu.granted,
            },
            warnings: conditions.warnings.clone(),
            ..Diagnostics::default()
        };
        Self { server, document, written: None }
    }

    /// Writes the document, if it is time to.
    pub(super) fn look(
        &mut self,
        (summary, status): (&RunSummary, &Status),
        observer: &Observer,
        tasks: &Tasks,
        bus: Option<&BusServer>,
        diagnosis: &Diagnostician,
    ) {
        if self.written.is_some_and(|written| written.elapsed() < EVERY) {
            return;
        }
        self.written = Some(Instant::now());
        let document = &mut self.document;
        document.number += 1;
        document.figures = figures(summary, status);
        if let Some(bus) = bus {
            document.figures.events.clone_from(bus.event_counts());
        }
        document.ports = self.server.counters();
        document.bus = bus.map(BusServer::counters).unwrap_or_default();
        document.bus_diagnosis = bus.and_then(BusServer::diagnosis).cloned();
        document.controller = self.server.controller();
        document.watch = WatchDiagnostics {
            cycles: summary.cycles(),
            dropped_records: observer.dropped_records(),
            dropped_events: observer.dropped_events(),
        };
        document.tasks = tasks.diagnostics(summary, diagnosis.watched());
        document.late = diagnosis.late();
        if let Ok(text) = serde_json::to_string(document) {
            // A document that is too long leaves the previous one: this thread has no way to report
            // it.
            let _ = self.server.diagnostics(&text);
        }
    }
}

/// Figures of the run, without its events.
fn figures(summary: &RunSummary, status: &Status) -> Figures {
    Figures {
        cycles: summary.cycles(),
        overruns: summary.overruns.count,
        skipped_releases: summary.skipped_releases.count,
        lost_frames: summary.lost_frames.count,
        working_counter_errors: summary.working_counter_errors.count,
        dropped_records: summary.dropped_records.count,
        release_jitter: histogram(&summary.release_jitter),
        wakeup_latency: histogram(&summary.wakeup_latency),
        execution_time: histogram(&summary.execution_time),
        response_time: histogram(&summary.response_time),
        waits_for_enable: status.waits_for_enable(),
        ring_closed: status.ring.map(|ring| ring.open.is_none()),
        ..Figures::default()
    }
}

fn histogram(times: &Statistics) -> Histogram {
    Histogram {
        up_to: times.up_to(BOUNDS),
        count: times.count(),
        sum_seconds: times.average().unwrap_or(0.0) * times.count() as f64 / 1e9,
    }
}
