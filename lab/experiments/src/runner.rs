//! Context and errors of an experiment.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::progress::Progress;
use record::recording::{Header, Recording, RecordingError, RecordingWriter};
use thiserror::Error;

/// Context of an experiment.
pub struct Context<'a> {
    /// Folder of raw recordings, one file per cell; it exists.
    pub directory: PathBuf,
    /// Programs to start child processes of.
    pub programs: Programs,
    /// Set when the user wants to stop: the experiment ends soon, and reports its results so far.
    pub stop: &'a AtomicBool,
    /// Prints a line on the progress.
    pub say: &'a (dyn Fn(&str) + Sync),
    /// Its cells, and how far it is.
    pub progress: Progress,
    /// True if the folder has cells of a run that this one resumes.
    pub continues: bool,
}

impl Context<'_> {
    /// Prints a line on the progress.
    pub fn say(&self, line: impl fmt::Display) {
        (self.say)(&line.to_string());
    }

    /// Says that the next of its cells begins, and the time left.
    pub fn begin_cell(&self, what: impl fmt::Display) {
        self.say(self.progress.begin(what, Instant::now()));
    }

    /// Says that the next of its cells was measured before.
    pub fn pass_over_cell(&self, what: impl fmt::Display) {
        self.say(self.progress.pass_over(what, Instant::now()));
    }

    /// True if the user wants to stop.
    #[must_use]
    pub fn stopped(&self) -> bool {
        // Relaxed: the flag carries no other data.
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits, unless the user wants to stop; true if the whole time has passed.
    pub fn wait(&self, duration: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let left = duration.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return true;
            }
            if self.stopped() {
                return false;
            }
            self.progress.look(Instant::now()).into_iter().for_each(|line| self.say(line));
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Path of the recording of this name.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.mcap"))
    }

    /// Begins the recording of this name: rows are written to the file as they come.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn record(&self, name: &str, header: &Header) -> Result<RecordingWriter<BufWriter<File>>, Error> {
        let path = self.path(name);
        let begin = || RecordingWriter::begin(BufWriter::new(File::create(&path)?), header);
        begin().map_err(|error| Error::file(&path, error))
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Paths of the programs that experiments start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// `onbeat`, for runs of the bus and simulated SubDevices.
    pub onbeat: PathBuf,
    /// `onbeat-measure`, for loads and pilots.
    pub measure: PathBuf,
}

impl Programs {
    /// The running program, and `onbeat` in the same folder.
    ///
    /// # Errors
    /// The system does not give the path of the running program.
    pub fn of_this() -> io::Result<Self> {
        let measure = std::env::current_exe()?;
        Ok(Self { onbeat: measure.with_file_name("onbeat"), measure })
    }
}

/// Opens a file for a recording or a report, a regular one only: opening a FIFO would block, and a
/// device may have no end.
///
/// # Errors
/// The file is not a regular one, or cannot be opened.
pub fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(path)
}

/// Reads a recording.
///
/// # Errors
/// The file, and its error.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let file = open(path).map_err(|error| Error::file(path, error))?;
    Recording::read(BufReader::new(file)).map_err(|error| Error::Recording { path: path.to_owned(), error })
}

/// Reason for a failed experiment.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A recording is not valid.
    #[error("{}: {error}", path.display())]
    Recording {
        /// Path of the recording.
        path: PathBuf,
        /// Error found in it.
        error: RecordingError,
    },
    /// A process ended with a failure.
    #[error("`{command}` {how}")]
    Process {
        /// Command line of the process.
        command: String,
        /// Exit status and output.
        how: String,
    },
    /// Another failure: one sentence with the place, the expected, the found, and the remedy.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// Creates an error for a file that cannot be read or written.
    pub fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// Creates an error from a sentence.
    pub fn other(sentence: impl fmt::Display) -> Self {
        Self::Other(sentence.to_string())
    }
}

/// Creates the folder of an experiment.
///
/// # Errors
/// The folder cannot be created.
pub fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|error| Error::file(path, error))
}

/// Path of the robot file that the user has named; else of the example `name`, written next to the
/// raw data, so that the results can be reproduced.
pub(crate) fn robot_file(
    context: &Context,
    named: Option<&Path>,
    name: &str,
    example: &str,
) -> Result<PathBuf, Error> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    let path = context.directory.join(name);
    fs::write(&path, example).map_err(|error| Error::file(&path, error))?;
    Ok(path)
}

/// Interval at which a wait checks for a stop by the user.
const LOOK_EVERY: Duration = Duration::from_millis(20);
