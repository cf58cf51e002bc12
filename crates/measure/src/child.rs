//! A process of ours: started, watched, told to stop, and never left behind.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// A process that is going on; dropped, it is killed.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    line: String,
    said: Option<JoinHandle<String>>,
    complained: Option<JoinHandle<String>>,
}

impl ChildProcess {
    /// Starts it, apart from the terminal: Ctrl-C is for the experiment, which ends its children in order.
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start(mut command: Command) -> Result<Self, Error> {
        command.process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = words(&command);
        let started = command.spawn();
        let mut child = started.map_err(|error| Error::Process {
            command: line.clone(),
            how: format!("cannot be started: {error}"),
        })?;
        let complained = child.stderr.take().map(gather);
        Ok(Self { child, line, said: None, complained })
    }

    /// As [`ChildProcess::start`], and gathers what it says for [`ChildProcess::finish_with`].
    ///
    /// # Errors
    /// A program that cannot be started.
    pub fn start_and_listen(command: Command) -> Result<Self, Error> {
        let mut process = Self::start(command)?;
        process.said = process.take_output().map(gather);
        Ok(process)
    }

    /// Its standard output, to be read as it comes; once.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is over by itself.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Nothing while it goes on.
    ///
    /// # Errors
    /// How it ended, and the last it said.
    pub fn still_goes_on(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(status)),
            Err(error) => Err(self.error(format!("cannot be waited for: {error}"))),
        }
    }

    /// Tells it to stop as Ctrl-C does, and waits until it has.
    ///
    /// # Errors
    /// One that failed, or does not stop.
    pub fn finish(mut self) -> Result<(), Error> {
        let status = self.stop()?;
        if status.success() { Ok(()) } else { Err(self.failure(status)) }
    }

    /// Tells it to stop as Ctrl-C does, waits until it has, and takes what `read` finds in what it said, also from one
    /// that failed in the end.
    ///
    /// # Errors
    /// One that said nothing of the kind, or does not stop.
    pub fn finish_with<T>(mut self, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        let status = self.stop()?;
        let said = self.said.take().map(joined).unwrap_or_default();
        read(&said).ok_or_else(|| self.failure(status))
    }

    fn stop(&mut self) -> Result<ExitStatus, Error> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| !self.is_over()) {
            // One that has just ended needs no telling.
            let _ = kill_process(pid, Signal::INT);
        }
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if begin.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(10)),
                Ok(None) => {
                    return Err(self.error(format!("did not stop within {} s", PATIENCE.as_secs())));
                }
                Err(error) => return Err(self.error(format!("cannot be waited for: {error}"))),
            }
        }
    }

    fn failure(&mut self, status: ExitStatus) -> Error {
        let complained = self.complained.take().map(joined).unwrap_or_default();
        let lines: Vec<&str> = complained.lines().collect();
        let last = lines[lines.len().saturating_sub(3)..].join("; ");
        let how = if last.is_empty() {
            format!("ended with {status}")
        } else {
            format!("ended with {status}: {last}")
        };
        self.error(how)
    }

    /// What is wrong with it, with its command line.
    pub(crate) fn error(&self, how: String) -> Error {
        Error::Process { command: self.line.clone(), how }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if !self.is_over() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
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
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

/// Time for an orderly stop, also on a machine under load.
const PATIENCE: Duration = Duration::from_secs(60);
