//! Watch over a running cycle: gathers its records, and has its events and progress reported.

use std::thread;
use std::time::Duration;

use control::observer::{CycleEvent, Happening, Observer};
use control::stop::StopHandle;
use ethercat::cia402::State;
use ethercat::main_device::{BringUpPhase, Event};
use ipc::diagnostics::TaskDiagnostics;
use motion::supervision::StopReason;
use record::{CycleRecord, RunSummary};
use rt::clock::{BusClock, Clock};

use super::answers::Answers;
use super::bus::BusServer;
use super::diagnosis::Diagnostician;
use super::diagnostics::DiagnosticsWriter;
use super::keeper::Keeper;
use super::recorder::Recorder;
use super::side_tasks::Beside;
use super::tasks::Tasks;
use crate::fault::FaultReports;
use crate::reporter::{HeldBy, Notice, Phase, Progress, Reporter};

/// Polling interval of the watch: the cycle's rings hold seconds.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Subjects of the watch, and its listeners.
pub(super) struct Watch {
    /// Clock of the cycle and of its events.
    pub(super) clock: BusClock,
    pub(super) observer: Observer,
    /// Cycle in which all SubDevices reached Op: earlier records belong to the bring-up.
    pub(super) op_since: Option<u64>,
    /// Cycles to measure.
    pub(super) limit: Option<u64>,
    /// The cycle ends with its first overrun.
    pub(super) overrun_ends: bool,
    pub(super) summary: RunSummary,
    pub(super) diagnosis: Diagnostician,
    pub(super) recorder: Option<Recorder>,
    pub(super) bus_server: Option<BusServer>,
    /// Faults on demand that took place.
    pub(super) faults: Option<FaultReports>,
    /// Answers of the controller process, if there is to be one.
    pub(super) answers: Option<Answers>,
    pub(super) diagnostics: Option<DiagnosticsWriter>,
    /// Axes with a load that only torque holds, each until it was reported that it delays the end.
    pub(super) loads: Vec<Load>,
    pub(super) tasks: Tasks,
    /// Keeps the history of stops, if there is a state directory.
    pub(super) keeper: Option<Keeper>,
    /// Figures of the tasks when the measurement ended.
    pub(super) frozen: Option<Vec<TaskDiagnostics>>,
}

/// Outcome of a run.
pub(crate) struct Measured {
    pub(crate) summary: RunSummary,
    /// Figures of the real-time threads at the end of the measurement.
    pub(crate) tasks: Vec<TaskDiagnostics>,
    /// Their disturbances, and causes of late cycles.
    #[cfg(feature = "diagnosis")]
    pub(crate) diagnosis: crate::summary::Diagnosis,
}

impl Watch {
    /// Polls until the end of the cycle. The cycle ends without this thread, so a delay here does
    /// not delay the end.
    pub(super) fn until_over(
        mut self,
        stop: &StopHandle,
        reporter: &mut dyn Reporter,
        beside: Option<&Beside>,
    ) -> (Measured, Option<Recorder>, Option<Keeper>) {
        while !self.observer.is_over() {
            thread::sleep(LOOK_EVERY);
            // Read before the poll: everything measured until then is taken.
            let asked = stop.is_requested();
            self.look(reporter);
            beside.into_iter().for_each(|beside| beside.look(reporter));
            if (asked || self.has_enough()) && self.freeze() {
                reporter.stopping();
            }
        }
        self.look(reporter);
        // Causes of what was late in the last one.
        self.look(reporter);
        self.bus_server.iter_mut().for_each(BusServer::tell_rest);
        reporter.ended();
        self.measured()
    }

    /// True if the cycle ends without a request: all requested cycles are measured, or an overrun
    /// ended it.
    fn has_enough(&self) -> bool {
        let overran = self.summary.overruns.count > 0 || self.summary.skipped_releases.count > 0;
        self.limit.is_some_and(|limit| self.summary.cycles() >= limit) || (self.overrun_ends && overran)
    }

    /// Ends the measurement, and returns true the first time; the stop follows.
    fn freeze(&mut self) -> bool {
        let first = self.frozen.is_none();
        if first {
            self.diagnosis.close();
            self.frozen = Some(self.tasks.diagnostics(&self.summary, self.diagnosis.watched()));
        }
        first
    }

    /// Takes records and events since the last poll.
    fn look(&mut self, reporter: &mut dyn Reporter) {
        // Read before the events: faults that ended by then have ended.
        let at = self.clock.now();
        // A cycle's events come before its record: with the records taken first, none is evaluated
        // before the event that precedes it.
        let records: Vec<CycleRecord> = std::iter::from_fn(|| self.observer.next_record()).collect();
        let events: Vec<CycleEvent> = std::iter::from_fn(|| self.observer.next_event()).collect();
        if let Some(server) = &mut self.bus_server {
            server.tell(&events);
        }
        for fault in self.faults.iter().flat_map(|faults| std::iter::from_fn(|| faults.next())) {
            reporter.notice(&fault);
        }
        if let Some(notice) = self.answers.as_mut().and_then(Answers::look) {
            reporter.notice(&notice);
        }
        self.op_since = events.iter().rev().find_map(in_op).or(self.op_since);
        self.recorder.iter_mut().for_each(|recorder| recorder.see(&events));
        if let Some(keeper) = &mut self.keeper {
            keeper.see(&events);
            keeper.look(reporter);
        }
        reporter.events(events);
        // It begins no later than the status of one of the records says.
        let status = self.observer.status();
        self.measure(&records, status.stop_began, reporter);
        if self.frozen.is_some() {
            self.loads.retain(|load| {
                let report = status.axes.get(load.axis);
                let report = report.filter(|it| it.state == Some(State::OperationEnabled));
                let why = match report {
                    Some(it) if it.stop == Some(StopReason::BrakeNotClosed) => HeldBy::OpenBrake,
                    Some(it) if it.quick_stop.is_some() && !load.has_brake => HeldBy::IgnoredQuickStop,
                    _ => return true,
                };
                reporter.notice(&Notice::HoldsLoad(load.name.clone(), why));
                false
            });
        }
        self.bus_server.iter_mut().for_each(BusServer::look);
        if let Some(diagnostics) = &mut self.diagnostics {
            let bus = self.bus_server.as_ref();
            diagnostics.look((&self.summary, &status), &self.observer, &self.tasks, bus, &self.diagnosis);
        }
        self.recorder.iter().for_each(|recorder| recorder.look(reporter));
        let phase = match (&self.frozen, self.op_since) {
            (Some(_), _) => Phase::Stopping,
            (None, Some(_)) => Phase::Measuring,
            (None, None) => Phase::BringUp,
        };
        let bus = self.bus_server.as_ref().and_then(BusServer::diagnosis);
        reporter.progress(&Progress { phase, status: &status, timing: &self.summary, bus, at });
    }

    /// Takes the records of cycles in Op, up to the stop.
    fn measure(&mut self, records: &[CycleRecord], stop_began: Option<u64>, reporter: &mut dyn Reporter) {
        let mut measured = Vec::new();
        for record in records {
            let in_op = self.op_since.is_some_and(|since| record.cycle >= since);
            let stops = stop_began.is_some_and(|began| record.cycle >= began);
            if in_op && !stops && self.frozen.is_none() && !self.has_enough() {
                self.summary.record(record);
                self.diagnosis.see(record);
                measured.push(*record);
                self.recorder.iter_mut().for_each(|recorder| recorder.record(record));
            }
        }
        self.diagnosis.look(&measured, reporter);
        if let Some(recorder) = &mut self.recorder {
            recorder.late(self.diagnosis.explained());
        }
    }

    /// Result of the measurement, the recording, and the keeper of the state.
    fn measured(mut self) -> (Measured, Option<Recorder>, Option<Keeper>) {
        let told = || self.tasks.diagnostics(&self.summary, self.diagnosis.watched());
        let tasks = self.frozen.take().unwrap_or_else(told);
        if let Some(recorder) = &mut self.recorder {
            recorder.late(self.diagnosis.explain_rest());
        }
        let measured = Measured {
            summary: self.summary,
            tasks,
            #[cfg(feature = "diagnosis")]
            diagnosis: self.diagnosis.finish(),
        };
        (measured, self.recorder, self.keeper)
    }
}

/// An axis that holds a load.
pub(super) struct Load {
    /// Its place among the axes.
    pub(super) axis: usize,
    pub(super) name: String,
    pub(super) has_brake: bool,
}

/// Cycle in which all SubDevices reached Op, for that event.
fn in_op(event: &CycleEvent) -> Option<u64> {
    match event.what {
        Happening::Bus(Event::BringUpPhase { phase: BringUpPhase::Op, .. }) => Some(event.cycle),
        _ => None,
    }
}
