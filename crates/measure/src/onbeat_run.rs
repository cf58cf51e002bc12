//! A run of the bus in a process of its own: memory locks, affinities and priorities end with it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

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
        let mut command = Command::new(&context.onbeat);
        command.arg("run");
        command.args(&self.robot).args(&self.options);
        if let Some(period) = self.period {
            command.arg("--period").arg(format!("{}ns", period.as_nanos()));
        }
        command.arg("--for").arg(format!("{}ms", longest.as_millis()));
        command.args(["--json", "--with-parent", "--record"]).arg(recording);
        // Ctrl-C is for the experiment, which ends its children in order.
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = words(&command);
        // What a run of the same name left behind must not be taken for this one's.
        let _ = std::fs::remove_file(recording);
        let started = command.spawn();
        let mut child =
            started.map_err(|error| Error::process(&line, format!("cannot be started: {error}")))?;
        let said = child.stdout.take().map(gather);
        let complained = child.stderr.take().map(gather);
        Ok(Running { child, line, recording: recording.to_owned(), said, complained })
    }
}

/// A run that is going on; dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    line: String,
    recording: PathBuf,
    said: Option<JoinHandle<String>>,
    complained: Option<JoinHandle<String>>,
}

impl Running {
    /// The number of the process.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the first beats are recorded; says whether they are, or the user wants to stop.
    ///
    /// # Errors
    /// A run that ended before, or took too long.
    pub fn wait_until_measuring(&mut self, context: &Context) -> Result<bool, Error> {
        let begin = Instant::now();
        while !has_rows(&self.recording) {
            if let Some(status) = self.child.try_wait().map_err(|error| self.lost(&error))? {
                return Err(self.failure(status));
            }
            if begin.elapsed() > PATIENCE {
                let how = format!("did not reach Op within {} s", PATIENCE.as_secs());
                return Err(Error::process(&self.line, how));
            }
            if !context.wait(Duration::from_millis(20)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether it is over by itself.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Tells it to stop, and takes the JSON it ends with. A run that found its bus broken at the end still gives
    /// its numbers.
    ///
    /// # Errors
    /// A run that failed, or does not end.
    pub fn finish(mut self) -> Result<Value, Error> {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid.filter(|_| !self.is_over()) {
            // One that has just ended needs no telling.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        }
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(|error| self.lost(&error))? {
                break status;
            }
            if begin.elapsed() > PATIENCE {
                let how = format!("did not stop within {} s", PATIENCE.as_secs());
                return Err(Error::process(&self.line, how));
            }
            thread::sleep(Duration::from_millis(20));
        };
        let said = self.said.take().map(joined).unwrap_or_default();
        serde_json::from_str(&said).map_err(|_| self.failure(status))
    }

    fn failure(&mut self, status: ExitStatus) -> Error {
        let complained = self.complained.take().map(joined).unwrap_or_default();
        let last: Vec<&str> = complained.lines().rev().take(3).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Error::process(&self.line, format!("ended with {status}: {}", last.join("; ")))
    }

    fn lost(&self, error: &std::io::Error) -> Error {
        Error::process(&self.line, format!("cannot be waited for: {error}"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Error {
    fn process(line: &str, how: impl Into<String>) -> Self {
        Self::Process { command: line.to_owned(), how: how.into() }
    }
}

/// Whether there is a row below the two lines of the top.
fn has_rows(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    BufReader::new(file).lines().take(3).filter(Result::is_ok).count() == 3
}

fn gather(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn joined(thread: JoinHandle<String>) -> String {
    thread.join().unwrap_or_default()
}

/// A command as a person would type it.
fn words(command: &Command) -> String {
    let mut line = "onbeat".to_owned();
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

/// Time for a bring-up or an orderly stop, also on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
