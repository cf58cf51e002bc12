//! A run of the bus in a process of its own: memory locks, affinities and priorities end with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::child::ChildProcess;
use crate::{Context, Error};

/// What is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnbeatRun {
    /// The robot file; `None` is the built-in six axes.
    pub robot: Option<PathBuf>,
    /// Instead of the robot file's period.
    pub period: Option<Duration>,
    /// Everything else, as on the command line.
    pub options: Vec<OsString>,
}

impl OnbeatRun {
    /// Starts it, with every beat in the file at `recording`. It runs until it is told to finish, at most for
    /// `longest`, and never longer than this process.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start(&self, context: &Context, recording: &Path, longest: Duration) -> Result<Running, Error> {
        self.start_as(&["run".into()], context, recording, longest)
    }

    /// The same as another command of this program that takes what `onbeat run` takes, and words of its own before it.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start_as(
        &self,
        words: &[OsString],
        context: &Context,
        recording: &Path,
        longest: Duration,
    ) -> Result<Running, Error> {
        let mut command = Command::new(&context.onbeat);
        command.args(words);
        command.args(&self.robot).args(&self.options);
        if let Some(period) = self.period {
            command.arg("--period").arg(format!("{}ns", period.as_nanos()));
        }
        command.arg("--for").arg(format!("{}ms", longest.as_millis()));
        command.args(["--json", "--with-parent", "--record"]).arg(recording);
        // What a run of the same name left behind must not be taken for this one's.
        let _ = std::fs::remove_file(recording);
        Ok(Running { process: ChildProcess::start_and_listen(command)?, recording: recording.to_owned() })
    }
}

/// A run that is going on; dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    process: ChildProcess,
    recording: PathBuf,
}

impl Running {
    /// The number of the process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process.id()
    }

    /// Waits until the first beats are recorded; says whether they are, or the user wants to stop.
    ///
    /// # Errors
    /// A run that ended before, or took too long.
    pub fn wait_until_measuring(&mut self, context: &Context) -> Result<bool, Error> {
        let begin = Instant::now();
        while !has_rows(&self.recording) {
            self.process.still_goes_on()?;
            if begin.elapsed() > PATIENCE {
                let how = format!("did not reach Op within {} s", PATIENCE.as_secs());
                return Err(self.process.error(how));
            }
            if !context.wait(Duration::from_millis(20)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is over by itself.
    pub fn is_over(&mut self) -> bool {
        self.process.is_over()
    }

    /// Tells it to stop, and takes the JSON it ends with. A run that found its bus broken at the end still gives
    /// its numbers.
    ///
    /// # Errors
    /// A run that failed, or does not end.
    pub fn finish(self) -> Result<Value, Error> {
        self.process.finish_with(|said| serde_json::from_str(said).ok())
    }
}

/// Whether there is a row below the two lines of the top.
fn has_rows(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    BufReader::new(file).lines().take(3).filter(Result::is_ok).count() == 3
}

/// Time for a bring-up, also on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
