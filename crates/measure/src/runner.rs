//! What an experiment is given, and how it fails.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use timing::recording::{Header, Recording, RecordingError, RecordingWriter};

/// What an experiment is given.
pub struct Context<'a> {
    /// Where raw recordings go, one file per cell; it exists.
    pub directory: PathBuf,
    /// This program, to start child processes of it.
    pub onbeat: PathBuf,
    /// Set when the user wants to stop: the experiment ends soon, and reports what it has.
    pub stop: &'a AtomicBool,
    /// Shows a line on how it is going.
    pub say: &'a (dyn Fn(&str) + Sync),
}

impl Context<'_> {
    /// Shows a line on how it is going.
    pub fn say(&self, line: impl fmt::Display) {
        (self.say)(&line.to_string());
    }

    /// Whether the user wants to stop.
    #[must_use]
    pub fn stopped(&self) -> bool {
        // Relaxed: the flag carries nothing but itself.
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits, unless the user wants to stop; says whether the whole time has passed.
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
            std::thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// Where the recording of this name goes.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.onbeat"))
    }

    /// Begins the recording of this name: rows go to the file as they come.
    ///
    /// # Errors
    /// The file that cannot be written.
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

/// Reads a recording back.
///
/// # Errors
/// The file, and what is wrong with it.
pub fn read(path: &Path) -> Result<Recording, Error> {
    let file = File::open(path).map_err(|error| Error::file(path, error))?;
    Recording::read(BufReader::new(file)).map_err(|error| Error::Recording { path: path.to_owned(), error })
}

/// An experiment that cannot be made.
#[derive(Debug, Error)]
pub enum Error {
    /// A file.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// A recording.
    #[error("{}: {error}", path.display())]
    Recording {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        error: RecordingError,
    },
    /// A process that was started, and ended as it should not.
    #[error("`{command}` {how}")]
    Process {
        /// The command.
        command: String,
        /// How it ended, and what it said.
        how: String,
    },
    /// Anything else: one sentence with the place, the expected, the found, and what to do.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// A file that cannot be read or written.
    pub fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }

    /// One sentence.
    pub fn other(sentence: impl fmt::Display) -> Self {
        Self::Other(sentence.to_string())
    }
}

/// Makes the folder of an experiment.
///
/// # Errors
/// The folder that cannot be made.
pub fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|error| Error::file(path, error))
}

/// How often a wait looks whether the user wants to stop.
const LOOK_EVERY: Duration = Duration::from_millis(20);
