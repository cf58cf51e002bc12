//! `run --record`: what is kept of the cycles.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;
use onbeat::{FlightRecorder, RecordedSignals, RecordingParts, Trigger};

use crate::arguments::{lasting, named, time};

/// Heading the help lists them under.
const RECORD: &str = "Record: see docs/recordings.md";

#[derive(Args, Debug)]
pub(super) struct Recording {
    /// Record every measured cycle to this file, as MCAP: timing, axes and signals; for Foxglove,
    /// PlotJuggler, `onbeat report`, `analyse` and `export`
    #[arg(long, help_heading = RECORD, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Let the file of --record take the place of an earlier recording
    #[arg(long, help_heading = RECORD, requires = "record")]
    force: bool,

    /// Signals in the file of --record
    #[arg(long, help_heading = RECORD, value_parser = recorded_signals(), value_name = "WHICH", default_value = "named", requires = "record")]
    signals: RecordedSignals,

    /// Record only around this trigger, each time to a separate file named after --record: fault,
    /// late, late:TIME, command (`onbeat record`), NAME>VALUE, NAME<VALUE; repeatable
    #[arg(long, help_heading = RECORD, value_name = "WHEN", requires = "record", group = "several")]
    trigger: Vec<Trigger>,

    /// Split the recording into files of this size, as 1GB or 500MB, named after --record and their
    /// start time; --keep of them are kept
    #[arg(long, help_heading = RECORD, value_name = "SIZE", requires = "record", conflicts_with = "trigger",
          group = "several", value_parser = size)]
    record_size: Option<u64>,

    /// Time before a trigger that is kept, 1min at most
    #[arg(long, help_heading = RECORD, value_name = "TIME", value_parser = before, default_value = "5s", requires = "trigger")]
    before: Duration,

    /// Time after a trigger that is kept, 24h at most; a further one within it lengthens the
    /// recording
    #[arg(long, help_heading = RECORD, value_name = "TIME", value_parser = after, default_value = "2s", requires = "trigger")]
    after: Duration,

    /// Files that are kept: beyond them the oldest go
    #[arg(long, help_heading = RECORD, value_name = "N", default_value = "20", requires = "several",
          value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
}

/// Time that is kept in memory.
fn before(text: &str) -> Result<Duration, String> {
    at_most(FlightRecorder::LONGEST_BEFORE, lasting(text), text)
}

/// Time that is kept after a trigger.
fn after(text: &str) -> Result<Duration, String> {
    at_most(FlightRecorder::LONGEST_AFTER, time(text), text)
}

fn at_most(longest: Duration, time: Result<Duration, String>, text: &str) -> Result<Duration, String> {
    time.and_then(|time| match time <= longest {
        true => Ok(time),
        false => Err(format!("found {text}, expected {} at most", types::duration::format(longest))),
    })
}

/// Bytes of a part.
fn size(text: &str) -> Result<u64, String> {
    let least = RecordingParts::LEAST;
    let wrong =
        || format!("found {text}, expected bytes as 1GB or 500MB, {} MB at least", least / 1_000_000);
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    bytes.filter(|bytes| *bytes >= least).ok_or_else(wrong)
}

impl Recording {
    /// The run with what is recorded of it.
    pub(super) fn of(&self, run: onbeat::Robot) -> onbeat::Robot {
        let Some(path) = &self.record else { return run };
        let run = run.record(path).recorded_signals(self.signals);
        let run = if self.force { run.replace_recording() } else { run };
        let kept = self.keep.into();
        if let Some(size) = self.record_size {
            return run.recording_parts(RecordingParts { size, kept });
        }
        if self.trigger.is_empty() {
            return run;
        }
        let triggers = self.trigger.clone();
        run.flight_recorder(FlightRecorder { triggers, before: self.before, after: self.after, kept })
    }
}

/// Signals that may be recorded, with their help.
fn recorded_signals() -> impl TypedValueParser<Value = RecordedSignals> {
    named([
        (RecordedSignals::None, "none", "No signals and no axes: timing alone"),
        (RecordedSignals::Named, "named", "Signals that the robot file names, and all axes"),
        (RecordedSignals::All, "all", "Signals of all process data, and all axes"),
    ])
}
