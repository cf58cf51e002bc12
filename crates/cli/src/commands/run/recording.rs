//! `run --record`: what is kept of the cycles.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use onbeat::{FlightRecorder, RecordedSignals, Trigger};

use crate::arguments::{lasting, time};

/// Heading the help lists them under.
const RECORD: &str = "Record: see docs/recordings.md";

#[derive(Args, Debug)]
pub(super) struct Recording {
    /// Write every measured cycle to this file, its timing, axes and signals: for `onbeat report`, `analyse` and `export`, or as
    /// MCAP where it ends in .mcap
    #[arg(long, help_heading = RECORD, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Signals in the file of --record
    #[arg(long, help_heading = RECORD, value_enum, value_name = "WHICH", default_value = "named", requires = "record")]
    signals: Recorded,

    /// Keep recordings only around this, each in a file named after that of --record, with time and cause: fault, late,
    /// late:TIME, command (`onbeat record`), NAME>VALUE, NAME<VALUE; may come more than once
    #[arg(long, help_heading = RECORD, value_name = "WHEN", requires = "record")]
    trigger: Vec<Trigger>,

    /// Time before a trigger that is kept, 1min at most
    #[arg(long, help_heading = RECORD, value_name = "TIME", value_parser = before, default_value = "5s", requires = "trigger")]
    before: Duration,

    /// Time after a trigger that is kept; a further one within it lengthens the recording
    #[arg(long, help_heading = RECORD, value_name = "TIME", value_parser = time, default_value = "2s", requires = "trigger")]
    after: Duration,

    /// Files that are kept: beyond them the oldest go
    #[arg(long, help_heading = RECORD, value_name = "N", default_value = "20", requires = "trigger",
          value_parser = clap::value_parser!(u16).range(1..))]
    keep: u16,
}

/// Time that is kept in memory.
fn before(text: &str) -> Result<Duration, String> {
    let longest = FlightRecorder::LONGEST_BEFORE;
    lasting(text).and_then(|time| match time <= longest {
        true => Ok(time),
        false => Err(format!("found {text}, expected {} at most", robot::duration::format(longest))),
    })
}

impl Recording {
    /// The run with what is recorded of it.
    pub(super) fn of(&self, run: onbeat::Robot) -> onbeat::Robot {
        let Some(path) = &self.record else { return run };
        let run = run.record(path).recorded_signals(self.signals.into());
        if self.trigger.is_empty() {
            return run;
        }
        let (triggers, kept) = (self.trigger.clone(), self.keep.into());
        run.flight_recorder(FlightRecorder { triggers, before: self.before, after: self.after, kept })
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Recorded {
    /// No signals and no axes: timing alone
    None,
    /// Those that the robot file names, and all axes
    Named,
    /// Those of all process data, and all axes
    All,
}

impl From<Recorded> for RecordedSignals {
    fn from(recorded: Recorded) -> Self {
        match recorded {
            Recorded::None => Self::None,
            Recorded::Named => Self::Named,
            Recorded::All => Self::All,
        }
    }
}
