//! Watches a running cycle: gathers its records, shows the live line, has told what happens. It never waits for an output.

use std::collections::BTreeMap;
use std::time::Duration;

use blame::{Explainer, Explanation};
use bridge::diagnostics::TaskDiagnostics;
use ethercat::main_device::Stage;
use runtime::clock::{Clock, MonotonicClock};
use runtime::disturbance::Disturbances;
use runtime::observer::{CycleEvent, Observer};
use runtime::status::Status;
use timing::{CycleRecord, RunSummary};

use super::bus::BusServer;
use super::chronicle::Chronicle;
use super::recorder::Recorder;
use super::tasks::Tasks;
use super::teller::Teller;
use crate::words::live_line::LiveLine;

/// How often the watch looks: the cycle's rings hold seconds.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is watched, and who is told.
pub(super) struct Watch {
    pub(super) observer: Observer,
    pub(super) chronicle: Chronicle,
    /// Beats to measure.
    pub(super) limit: Option<u64>,
    /// The cycle ends with its first overrun.
    pub(super) overrun_ends: bool,
    pub(super) summary: RunSummary,
    pub(super) explainer: Option<Explainer>,
    pub(super) recorder: Option<Recorder>,
    pub(super) bus_server: Option<BusServer>,
    pub(super) teller: Option<Teller>,
    pub(super) tasks: Tasks,
    /// How the tasks stood when the measurement ended.
    pub(super) frozen: Option<Vec<TaskDiagnostics>>,
}

/// What a run came to.
pub(super) struct Measured {
    pub(super) summary: RunSummary,
    /// Why beats were late, if that was asked for.
    pub(super) explanation: Option<Explanation>,
    /// How the real-time threads stood at the end of the measurement.
    pub(super) tasks: Vec<TaskDiagnostics>,
    /// What disturbed them, if that was asked for.
    pub(super) disturbances: Vec<Disturbances>,
}

impl Watch {
    /// Whether the cycle is over.
    pub(super) fn is_over(&self) -> bool {
        self.observer.is_over()
    }

    /// True if the cycle ends by itself: all asked-for beats are measured, or one has overrun that must not.
    pub(super) fn has_enough(&self) -> bool {
        let overran = self.summary.overruns.count > 0 || self.summary.skipped_releases.count > 0;
        self.limit.is_some_and(|limit| self.summary.cycles() >= limit) || (self.overrun_ends && overran)
    }

    /// Ends the measurement; what follows is the stop.
    pub(super) fn freeze(&mut self) {
        if self.frozen.is_none() {
            self.tasks.close();
            self.chronicle.close();
            self.frozen = Some(self.tasks.told(&self.summary));
        }
    }

    /// Takes what has come since the last look.
    pub(super) fn look(&mut self, live: &mut LiveLine) {
        // A beat's events come before its record: with the records taken first, none is judged before
        // the event that it belongs behind.
        let records: Vec<CycleRecord> = std::iter::from_fn(|| self.observer.next_record()).collect();
        let Self { observer, bus_server, .. } = self;
        let events = std::iter::from_fn(|| observer.next_event());
        let told = |event: &CycleEvent| bus_server.iter().for_each(|server| server.tell(event));
        self.chronicle.take(events.inspect(told));
        let status = self.observer.status();
        self.chronicle.look(&status, MonotonicClock.now());
        let mut measured = Vec::new();
        for record in &records {
            let in_op = self.chronicle.op_since().is_some_and(|since| record.start_ns > since.as_nanos());
            if in_op && self.frozen.is_none() && !self.has_enough() {
                self.summary.record(record);
                self.tasks.see(record);
                measured.push(*record);
                self.recorder.iter_mut().for_each(|recorder| recorder.record(record));
            }
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.look(&measured);
        }
        if let Some(teller) = &mut self.teller {
            teller.look(&self.summary, &self.observer, &self.tasks, self.bus_server.as_ref());
        }
        live.show(|| self.line(&status));
    }

    /// Result of the measurement, the recording, and the chronicle.
    pub(super) fn measured(mut self) -> (Measured, Option<Recorder>, Chronicle) {
        let disturbances = self.tasks.found();
        let tasks = self.frozen.take().unwrap_or_else(|| self.tasks.told(&self.summary));
        let explanation = self.explainer.map(Explainer::finish);
        let measured = Measured { summary: self.summary, explanation, tasks, disturbances };
        (measured, self.recorder, self.chronicle)
    }

    fn line(&self, status: &Status) -> String {
        let states = match self.chronicle.lost() {
            0 => states(status),
            lost => format!("{lost} without process data, {}", states(status)),
        };
        if self.frozen.is_some() {
            return format!("stopping: {states} ({:?})", status.stage);
        }
        if self.chronicle.op_since().is_none() || status.stage != Stage::Op {
            return format!("{states} ({:?})", status.stage);
        }
        let jitter = self.summary.release_jitter.maximum().unwrap_or(0) as f64 / 1e3;
        // What fits on a narrow terminal comes first.
        format!(
            "{} cycles, {} lost, {} overruns, {} WKC errors | {states} | jitter <= {jitter:.0} us",
            self.summary.cycles(),
            self.summary.lost_frames.count,
            self.summary.overruns.count,
            self.summary.working_counter_errors.count,
        )
    }
}

/// How many axes are in which state.
fn states(status: &Status) -> String {
    let mut counts = BTreeMap::new();
    for axis in &status.axes {
        *counts.entry(super::outcome::state(axis)).or_insert(0_usize) += 1;
    }
    if counts.is_empty() {
        return "no axes".to_owned();
    }
    let counts: Vec<String> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    counts.join(", ")
}
