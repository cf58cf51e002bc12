//! Child process that is watched, stopped in order, and never left behind; the folder for its
//! socket.

use std::fmt::Write as _;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::Error;

/// Running child process; dropping it kills it.
#[derive(Debug)]
pub struct ChildProcess {
    child: Child,
    line: String,
    said: Option<JoinHandle<String>>,
    complained: Option<JoinHandle<String>>,
}

impl ChildProcess {
    /// Starts a process, detached from the terminal: Ctrl-C is for the experiment, which ends its
    /// children in order.
    ///
    /// # Errors
    /// The program cannot be started.
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

    /// Starts a process as [`ChildProcess::start`] does, and collects its output for
    /// [`ChildProcess::finish_with`].
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start_and_listen(command: Command) -> Result<Self, Error> {
        let mut process = Self::start(command)?;
        process.said = process.take_output().map(gather);
        Ok(process)
    }

    /// Standard output of the process, to be read as it comes; available once.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if the process has ended by itself.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Checks that the process is still running.
    ///
    /// # Errors
    /// The exit status, and the last line of output.
    pub fn still_goes_on(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(self.failure(status)),
            Err(error) => Err(self.error(format!("cannot be waited for: {error}"))),
        }
    }

    /// Stops the process as Ctrl-C does, and waits for its end.
    ///
    /// # Errors
    /// The process failed, or does not stop.
    pub fn finish(mut self) -> Result<(), Error> {
        let status = self.stop()?;
        if status.success() { Ok(()) } else { Err(self.failure(status)) }
    }

    /// Stops the process as Ctrl-C does, waits for its end, and returns the result of `read` on its
    /// output, even if it failed in the end.
    ///
    /// # Errors
    /// `read` found nothing in the output, or the process does not stop.
    pub fn finish_with<T>(mut self, read: impl FnOnce(&str) -> Option<T>) -> Result<T, Error> {
        let status = self.stop()?;
        let said = self.said.take().map(joined).unwrap_or_default();
        read(&said).ok_or_else(|| self.failure(status))
    }

    fn stop(&mut self) -> Result<ExitStatus, Error> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| !self.is_over()) {
            // A process that has just ended needs no signal.
            let _ = kill_process(pid, Signal::INT);
        }
        let begin = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if begin.elapsed() < TIMEOUT => thread::sleep(Duration::from_millis(10)),
                Ok(None) => {
                    return Err(self.error(format!("did not stop within {} s", TIMEOUT.as_secs())));
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

    /// Error of this process, with its command line.
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

/// Command line as typed in a shell.
fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut line = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    for argument in command.get_args() {
        let _ = write!(line, " {}", argument.to_string_lossy());
    }
    line
}

/// Longest wait for an orderly stop, also on a machine under load.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Folder for a socket, removed on drop. The experiment's own folder may have a path too long for a
/// socket.
pub(crate) struct SocketFolder(pub(crate) PathBuf);

impl SocketFolder {
    /// Makes one, with the experiment's name in its own.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn new(experiment: &str) -> Result<Self, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("onbeat-measure-{experiment}-{process}-{number}"));
        std::fs::create_dir_all(&path).map_err(|error| Error::file(&path, error))?;
        Ok(Self(path))
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
