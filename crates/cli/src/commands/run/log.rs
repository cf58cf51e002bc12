//! Events of a run in a file (`--events`).

use std::path::Path;

use control::bus::{PartNames, Repeated, Repeats, event};
use ethercat::time::Instant;
use ipc::bus::{Event, Severity};
use machine::conditions;
use onbeat::compose::names::part_names;
use onbeat::{CycleEvent, LateCycle, Progress};
use robot::RobotConfig;
use rt::clock::{Clock, MonotonicClock};
use serde::Serialize;
use serde_json::{Value, json};

use super::event_file::EventFile;
use crate::failure::Failure;
use crate::journal::{self, Fields};
use crate::words::live_line::Voice;
use crate::words::moment::TimeOfDay;

/// Keeps and counts what happens in a run.
pub(super) struct Log {
    /// Names of the robot's parts, for sentences.
    pub(super) names: PartNames,
    /// Clock of the instants of the run.
    pub(super) times: TimeOfDay,
    voice: Voice,
    file: Option<EventFile>,
    /// Pairs of events that repeat, for the file.
    repeats: Repeats,
    cycle: u64,
    /// Latest bus time of a run that does not wait.
    bus_time: Option<Instant>,
}

/// A line of the file of events.
#[derive(Serialize)]
struct Line<T> {
    /// UTC, RFC 3339.
    time: String,
    #[serde(flatten)]
    what: T,
}

impl Log {
    /// Opens the file, if there is one.
    ///
    /// # Errors
    /// A file that does not open.
    pub(super) fn open(
        robot: &RobotConfig,
        (interface, times): (Option<&str>, TimeOfDay),
        file: Option<&Path>,
        voice: Voice,
    ) -> Result<Self, Failure> {
        let names = part_names(robot, interface.map(str::to_owned));
        let log = Self {
            file: file.map(EventFile::open).transpose()?,
            voice,
            names,
            repeats: Repeats::default(),
            cycle: 0,
            bus_time: times.start(),
            times,
        };
        let on = interface.map_or_else(|| "a simulated bus".to_owned(), |it| format!("interface {it}"));
        let conditions = conditions::read().of_robot(&robot.name, robot.sha256());
        let mut began = conditions::facts(&conditions);
        began.insert("interface".to_owned(), json!(interface));
        began.insert("process".to_owned(), json!(std::process::id()));
        let version = &conditions.version;
        let sentence = format!("onbeat {version} runs \"{}\" on {on}", robot.name);
        log.own("run_began", Severity::Ok, &sentence, Value::Object(began));
        Ok(log)
    }

    /// Takes events of the cycle.
    pub(super) fn events(&mut self, events: &[CycleEvent]) {
        if self.file.is_none() {
            return;
        }
        for happened in events {
            let passes = self.repeats.passes(happened);
            let Some(event) = event(happened, &self.names) else { continue };
            if passes {
                self.event(&event);
            }
        }
    }

    fn repeated(&self, repeated: &[Repeated]) {
        repeated.iter().filter_map(|it| it.event(&self.names)).for_each(|event| self.event(&event));
    }

    fn event(&self, event: &Event) {
        let time = self.times.moment(Instant::from_nanos(event.at_ns), event.cycle).time();
        self.write(Line { time, what: event });
    }

    /// Takes a notice.
    pub(super) fn notice(&self, severity: Severity, sentence: &str) {
        self.write(self.line("notice", severity, sentence, json!({})));
    }

    /// Logs and keeps a late cycle.
    pub(super) fn late(&self, late: &LateCycle) {
        let sentence = late.to_string();
        let time = self.times.moment(Instant::from_nanos(late.start_ns), late.cycle).time();
        let causes = serde_json::to_value(&late.causes).unwrap_or_default();
        let what = json!({
            "cycle": late.cycle, "at_ns": late.start_ns, "severity": Severity::Warning, "sentence": sentence,
            "event": "late_cycle", "late_ns": late.late_ns, "causes": causes,
        });
        let mut fields = Fields::new();
        journal::add(&mut fields, &what);
        self.voice.tell_with(Severity::Warning, &sentence, fields);
        self.write(Line { time, what });
    }

    /// Learns that the stop begins.
    pub(super) fn stopping(&self) {
        let sentence = "the measurement is complete: the axes stop, then the bus goes to Init";
        self.own("stopping", Severity::Ok, sentence, json!({}));
    }

    /// Looks how the run goes.
    pub(super) fn look(&mut self, progress: &Progress<'_>) {
        self.cycle = progress.status.cycle;
        self.bus_time = self.bus_time.map(|_| progress.at);
        let due = self.repeats.due(progress.at);
        self.repeated(&due);
    }

    /// Ends the file with the outcome of the run.
    ///
    /// # Errors
    /// A file that is not whole.
    pub(super) fn end(mut self, outcome: &Result<(), Failure>) -> Result<(), Failure> {
        let rest = self.repeats.rest();
        self.repeated(&rest);
        let (severity, sentence) = match outcome {
            Ok(()) => (Severity::Ok, "the run ended well".to_owned()),
            Err(failure) => (Severity::Error, failure.to_string()),
        };
        let code = outcome.as_ref().map_or_else(Failure::code, |()| 0);
        let what = json!({ "exit_code": code });
        match outcome {
            Ok(()) => self.own("run_ended", severity, &sentence, what),
            // The program ends with the sentence, which the journal gets as well.
            Err(_) => {
                let line = self.line("run_ended", severity, &sentence, what);
                self.keep(severity, &format!("the run ended with exit code {code}"), &line);
                self.write(line);
            }
        }
        self.file.take().map_or(Ok(()), EventFile::finish)
    }

    /// Keeps an event of the program's own, which is no line of a terminal's.
    fn own(&self, event: &str, severity: Severity, sentence: &str, what: Value) {
        let line = self.line(event, severity, sentence, what);
        self.keep(severity, sentence, &line);
        self.write(line);
    }

    fn keep(&self, severity: Severity, sentence: &str, line: &Line<Value>) {
        let mut fields = Fields::new();
        journal::add(&mut fields, &line.what);
        self.voice.keep(severity, sentence, fields);
    }

    fn line(&self, event: &str, severity: Severity, sentence: &str, mut what: Value) -> Line<Value> {
        let now = self.bus_time.unwrap_or_else(|| MonotonicClock.now());
        what["cycle"] = self.cycle.into();
        what["at_ns"] = now.as_nanos().into();
        what["severity"] = json!(severity);
        what["sentence"] = sentence.into();
        what["event"] = event.into();
        Line { time: self.times.moment(now, self.cycle).time(), what }
    }

    fn write(&self, line: Line<impl Serialize>) {
        if let (Some(file), Ok(line)) = (&self.file, serde_json::to_string(&line)) {
            file.write(line);
        }
    }
}
