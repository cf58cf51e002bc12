//! Writes the diagnostics of the run to the IPC, a few times a second.

use std::time::{Duration, Instant};

use control::observer::Observer;
use ipc::diagnostics::{Conditions, Diagnostics, WatchDiagnostics};
use ipc::server::Server;
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
        summary: &RunSummary,
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
