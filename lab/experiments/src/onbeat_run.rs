//! Run of the bus in a separate process: memory locks, affinities and priorities end with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use record::RecordingReader;
use serde_json::Value;

use crate::child::ChildProcess;
use crate::{Context, Error};

/// Settings of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnbeatRun {
    /// Robot file; `None` for the built-in six axes.
    pub robot: Option<PathBuf>,
    /// Period in place of the robot file's.
    pub period: Option<Duration>,
    /// Additional command-line options.
    pub options: Vec<OsString>,
}

impl OnbeatRun {
    /// Starts the run, and records the timing of every cycle in the file at `recording`. It runs
    /// until it is stopped, for at most `longest`, and never longer than this process.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(&self, context: &Context, recording: &Path, longest: Duration) -> Result<Running, Error> {
        let mut command = Command::new(&context.programs.onbeat);
        command.args(["run", "--signals", "none"]);
        command.args(&self.robot).args(&self.options);
        if let Some(period) = self.period {
            command.arg("--period").arg(format!("{}ns", period.as_nanos()));
        }
        command.arg("--for").arg(format!("{}ms", longest.as_millis()));
        command.args(["--json", "--with-parent", "--record"]).arg(recording);
        // The file of an earlier run of this name must not be taken for this one's.
        let _ = std::fs::remove_file(recording);
        Ok(Running { process: ChildProcess::start_and_listen(command)?, recording: recording.to_owned() })
    }
}

/// Running run; dropping it kills it.
#[derive(Debug)]
pub struct Running {
    process: ChildProcess,
    recording: PathBuf,
}

impl Running {
    /// Id of the process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the first cycles are recorded; false if the user stops it before.
    ///
    /// # Errors
    /// The run ended before, or took too long.
    pub fn wait_until_measuring(&mut self, context: &Context) -> Result<bool, Error> {
        let begin = Instant::now();
        while !has_rows(&self.recording) {
            self.process.still_goes_on()?;
            if begin.elapsed() > TIMEOUT {
                let how = format!("did not reach Op within {} s", TIMEOUT.as_secs());
                return Err(self.process.error(how));
            }
            if !context.wait(Duration::from_millis(20)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if the run has ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.process.is_over()
    }

    /// Stops the run, and returns its final JSON. A run that found its bus broken at the end still
    /// returns its numbers.
    ///
    /// # Errors
    /// The run failed, or does not end.
    pub fn finish(self) -> Result<Value, Error> {
        self.process.finish_with(|said| serde_json::from_str(said).ok())
    }
}

/// True if there is a row.
fn has_rows(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    RecordingReader::open(BufReader::new(file)).is_ok_and(|mut it| matches!(it.next_row(), Ok(Some(_))))
}

/// Longest wait for a bring-up, also on a machine under load.
const TIMEOUT: Duration = Duration::from_secs(60);
