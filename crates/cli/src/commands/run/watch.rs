//! Watches a running cycle: gathers its records, shows the live line, tells what happens on the bus.

use std::collections::BTreeMap;
use std::time::Duration;

use blame::{Explainer, Explanation};
use bridge::diagnostics::TaskDiagnostics;
use ethercat::cia402::ErrorCode;
use ethercat::main_device::{Event, Stage};
use ethercat::time::Instant;
use robot::Robot;
use runtime::disturbance::Disturbances;
use runtime::observer::{Happening, Observer};
use runtime::status::Status;
use timing::{CycleRecord, RunSummary};

use super::recorder::Recorder;
use super::tasks::Tasks;
use super::teller::Teller;
use crate::words;
use crate::words::live_line::LiveLine;

/// How often the watch looks: the cycle's rings hold seconds.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What is watched.
pub(super) struct Watch {
    observer: Observer,
    names: Vec<String>,
    limit: Option<u64>,
    summary: RunSummary,
    explainer: Option<Explainer>,
    overrun_ends: bool,
    /// When all SubDevices were in Op: records before it are of the bring-up.
    op_since: Option<Instant>,
    /// Measured beats without whole process data, in a row, up to now.
    broken_beats: u64,
    /// How things stood when the measurement ended.
    frozen: Option<(Status, Vec<TaskDiagnostics>)>,
    recorder: Option<Recorder>,
    teller: Option<Teller>,
    tasks: Tasks,
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
    pub(super) status: Status,
    /// Beats without whole process data, in a row, at the end; 0 unless there were many.
    pub(super) broken_beats: u64,
}

/// Time without whole process data after which the bus is said to be broken: a lost frame is not worth a
/// word, and a drive's watchdog has expired by then.
const BROKEN_AFTER: Duration = Duration::from_millis(100);

impl Watch {
    /// Watches from the first beat in Op, for at most `limit` beats.
    pub(super) fn new(
        robot: &Robot,
        observer: Observer,
        limit: Option<u64>,
        recorder: Option<Recorder>,
        tasks: Tasks,
    ) -> Self {
        let period = u64::try_from(robot.cycle.period.as_nanos()).unwrap_or(u64::MAX);
        let names = robot.bus.sub_devices.iter().map(|it| it.name.clone()).collect();
        let summary = RunSummary::new(period);
        Self {
            observer,
            names,
            limit,
            summary,
            explainer: None,
            overrun_ends: false,
            op_since: None,
            broken_beats: 0,
            frozen: None,
            recorder,
            teller: None,
            tasks,
        }
    }

    /// Lets others know.
    pub(super) fn told_by(mut self, teller: Option<Teller>) -> Self {
        self.teller = teller;
        self
    }

    /// Lets late beats be explained.
    pub(super) fn explained_by(mut self, explainer: Option<Explainer>) -> Self {
        self.explainer = explainer;
        self
    }

    /// Ends the measurement with the first overrun: the cycle does.
    pub(super) fn ended_by_overrun(mut self, ends: bool) -> Self {
        self.overrun_ends = ends;
        self
    }

    /// Whether an overrun has ended the cycle.
    pub(super) fn has_overrun(&self) -> bool {
        self.overrun_ends && (self.summary.overruns.count > 0 || self.summary.skipped_releases.count > 0)
    }

    /// Whether the cycle is over.
    pub(super) fn is_over(&self) -> bool {
        self.observer.is_over()
    }

    /// Whether all asked-for beats are measured.
    pub(super) fn has_enough(&self) -> bool {
        self.limit.is_some_and(|limit| self.summary.cycles() >= limit)
    }

    /// Ends the measurement; what follows is the stop.
    pub(super) fn freeze(&mut self) {
        if self.frozen.is_none() {
            self.tasks.close();
            self.frozen = Some(self.stand());
        }
    }

    /// Takes what has come since the last look.
    pub(super) fn look(&mut self, live: &mut LiveLine) {
        // A beat's events come before its record: with the records taken first, none is judged before
        // the event that it belongs behind.
        let records: Vec<CycleRecord> = std::iter::from_fn(|| self.observer.next_record()).collect();
        while let Some(event) = self.observer.next_event() {
            if let Happening::Bus(event) = event.what {
                self.tell(event, live);
            }
        }
        let mut measured = Vec::new();
        for record in &records {
            let in_op = self.op_since.is_some_and(|since| record.start_ns > since.as_nanos());
            if in_op && self.frozen.is_none() && !self.has_enough() && !self.has_overrun() {
                self.summary.record(record);
                self.tasks.see(record);
                measured.push(*record);
                if let Some(recorder) = &mut self.recorder {
                    recorder.record(record, live);
                }
                self.watch_process_data(record, live);
            }
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.flush(live);
        }
        if let Some(explainer) = &mut self.explainer {
            explainer.look(&measured);
        }
        if let Some(teller) = &mut self.teller {
            teller.look(&self.summary, &self.observer, &self.tasks);
        }
        live.show(|| self.line());
    }

    pub(super) fn measured(mut self) -> (Measured, Option<Recorder>) {
        let broken_beats = if self.is_broken() { self.broken_beats } else { 0 };
        let disturbances = self.tasks.found();
        let (status, tasks) = self.frozen.take().unwrap_or_else(|| self.stand());
        let explanation = self.explainer.map(Explainer::finish);
        let measured =
            Measured { summary: self.summary, explanation, tasks, disturbances, status, broken_beats };
        (measured, self.recorder)
    }

    /// How things stand now.
    fn stand(&self) -> (Status, Vec<TaskDiagnostics>) {
        (self.observer.status(), self.tasks.told(&self.summary))
    }

    /// Tells when the bus breaks, and when it is whole again.
    fn watch_process_data(&mut self, record: &CycleRecord, live: &mut LiveLine) {
        let was_broken = self.is_broken();
        if record.lost_frames > 0 || !record.working_counter_ok {
            self.broken_beats += 1;
            if self.is_broken() && !was_broken {
                live.say(&format!("no whole process data for {} beats in a row", self.broken_beats));
            }
        } else {
            if was_broken {
                live.say(&format!("whole process data again after {} beats", self.broken_beats));
            }
            self.broken_beats = 0;
        }
    }

    fn is_broken(&self) -> bool {
        let longest = BROKEN_AFTER.as_nanos() / u128::from(self.summary.period_ns().max(1));
        u128::from(self.broken_beats) > longest.max(2)
    }

    fn tell(&mut self, event: Event, live: &mut LiveLine) {
        let name = |position: u16| self.names.get(usize::from(position)).map_or("?", String::as_str);
        match event {
            Event::Stage { stage: Stage::Op, at } => self.op_since = Some(at),
            Event::StateChanged { position, status, code } if self.frozen.is_none() => {
                live.say(&format!(
                    "SubDevice {position} \"{}\" is in {status}, AL status code {code}",
                    name(position)
                ));
            }
            Event::Unreachable { position } if self.frozen.is_none() => {
                live.say(&format!(
                    "SubDevice {position} \"{}\" does not answer any more: check its power and the cable to it",
                    name(position)
                ));
            }
            Event::Emergency { position, error_code, error_register, manufacturer } => {
                let error_code = ErrorCode(error_code);
                let next = error_code.remedy();
                live.say(&format!(
                    "SubDevice {position} \"{}\" sends emergency {error_code}{}{next} (error register \
                     {error_register:#04x}, {manufacturer:02x?})",
                    name(position),
                    if next.is_empty() { "" } else { "; " },
                ));
            }
            Event::OtherMainDevice { source, frames } => {
                live.say(&words::owner::other_main_device(source, frames));
            }
            // Failures end the cycle and come with it.
            _ => {}
        }
    }

    fn line(&self) -> String {
        let status = self.observer.status();
        if self.op_since.is_none() || self.frozen.is_some() {
            return format!("{} ({:?})", states(&status), status.stage);
        }
        let states = if self.is_broken() { "no answer".to_owned() } else { states(&status) };
        let jitter = self.summary.release_jitter.maximum().unwrap_or(0) as f64 / 1e3;
        // What fits first on a narrow terminal matters most.
        format!(
            "{states} | {} cycles | release jitter <= {jitter:.1} us | WKC errors {} | lost {} | overruns {}",
            self.summary.cycles(),
            self.summary.working_counter_errors.count,
            self.summary.lost_frames.count,
            self.summary.overruns.count,
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
