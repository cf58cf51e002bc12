//! Every change to the machine, remembered before it is made, and undone.
//!
//! A [`Journal`] is a file below `/run/onbeat`: a line for each change, synced to the file before the change is made.
//! Dropping the journal undoes its changes, the last one first, and removes the file. When a process is killed its
//! journal stays behind, and [`restore()`] does what the process could not. Whether a process still lives is asked of the
//! lock it holds on its file, which the kernel takes away with the process, whatever ended it.
//!
//! ```no_run
//! use onbeat_machine::journal::Journal;
//!
//! # fn main() -> std::io::Result<()> {
//! let mut journal = Journal::begin("timer migration")?;
//! journal.write("/proc/sys/kernel/timer_migration".as_ref(), "0")?;
//! // ...
//! assert!(journal.undo().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `change` | one change, and how it is undone |
//! | `record` | the file: header, changes, lock |
//! | `restore` | journals whose process is dead |

mod change;
mod record;
mod restore;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

pub(crate) use change::{Change, move_all};
pub use change::{CpuFormat, Failure};
pub(crate) use restore::claimed;
pub use restore::{Restoration, Restored, restore, restore_crashed, restore_in};

use crate::cpus::Cpus;
use crate::task::{self, Task};
use record::Record;

/// Where journals lie: gone with the next start of the machine, as are the changes.
pub const DIRECTORY: &str = "/run/onbeat";

/// Changes to the machine, undone when this is dropped; [`Journal::persistent`] ones stay until they are restored.
#[derive(Debug)]
pub struct Journal {
    record: Record,
    changes: Vec<Change>,
    /// Outlives the process.
    persistent: bool,
    undone: bool,
}

impl Journal {
    /// An empty journal below [`DIRECTORY`]; `what` says in a few words what its changes are for.
    ///
    /// # Errors
    /// The folder or the file cannot be made: it needs root.
    pub fn begin(what: &str) -> io::Result<Self> {
        Self::begin_in(Path::new(DIRECTORY), what)
    }

    /// [`Journal::begin`] in another folder.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn begin_in(directory: &Path, what: &str) -> io::Result<Self> {
        Self::new(directory, what, false)
    }

    /// A journal whose changes outlive the process: [`restore()`] undoes them.
    ///
    /// # Errors
    /// The folder or the file cannot be made: it needs root.
    pub fn persistent(what: &str) -> io::Result<Self> {
        Self::persistent_in(Path::new(DIRECTORY), what)
    }

    /// [`Journal::persistent`] in another folder.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn persistent_in(directory: &Path, what: &str) -> io::Result<Self> {
        Self::new(directory, what, true)
    }

    fn new(directory: &Path, what: &str, persistent: bool) -> io::Result<Self> {
        let record = Record::create(directory, what, persistent)?;
        if !persistent {
            own().push(record.path().to_owned());
        }
        Ok(Self { record, changes: Vec::new(), persistent, undone: false })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.record.path()
    }

    /// Changes remembered so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether nothing was changed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Writes `value` to a file, which is given its old content back later. A file that is not there is made, and
    /// removed again. Of a file that shows choices, as `always [madvise] never`, the old choice is kept.
    ///
    /// # Errors
    /// The old content cannot be read, or the new one is refused; then nothing was changed.
    pub fn write(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let before = match fs::read_to_string(path) {
            Ok(text) => Some(change::chosen(&text).to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        self.make_with(Change::File { path: path.to_owned(), before }, || fs::write(path, value))
    }

    /// Lets a thread run on these CPUs only. Undoing gives back what this took and takes what this gave; a change that
    /// somebody else made to other CPUs in between stays.
    ///
    /// # Errors
    /// ESRCH if there is no such thread (any more), EINVAL if the kernel has bound it, EPERM.
    pub fn set_affinity(&mut self, tid: i32, cpus: &Cpus) -> io::Result<()> {
        let task = Task::read(tid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        let before = task::affinity(tid)?;
        let change = Change::Affinity {
            tid,
            started: task.started,
            before: before.to_string(),
            after: cpus.to_string(),
        };
        self.make_with(change, || task::set_affinity(tid, cpus))
    }

    /// Writes a set of CPUs to a file that holds one. Undone as [`Journal::set_affinity`].
    ///
    /// # Errors
    /// The old set cannot be read, or the new one is refused; then nothing was changed.
    pub fn set_cpus(&mut self, path: &Path, format: CpuFormat, cpus: &Cpus) -> io::Result<()> {
        let before = format.read(path)?;
        let change = Change::Cpus {
            path: path.to_owned(),
            format,
            before: before.to_string(),
            after: cpus.to_string(),
        };
        self.make_with(change, || fs::write(path, format.write(cpus)))
    }

    /// Makes a folder (a control group), which is removed later.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        self.make_with(Change::Directory { path: path.to_owned() }, || fs::create_dir(path))
    }

    /// Runs a command; `undo`, program and arguments, is run later.
    ///
    /// # Errors
    /// It cannot be started, or ends with anything but success.
    pub fn run(&mut self, command: &mut Command, undo: &[&str]) -> io::Result<()> {
        self.make_with(Change::command(undo), || change::succeed(command))
    }

    /// Remembers `change`, then makes it; one that fails is forgotten.
    pub(crate) fn make_with<T>(
        &mut self,
        change: Change,
        make: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.remember(change)?;
        let made = make();
        if made.is_err() {
            self.changes.pop();
            self.record.forget_last()?;
        }
        made
    }

    /// Remembers a change that is about to be made.
    pub(crate) fn remember(&mut self, change: Change) -> io::Result<()> {
        self.record.append(&change)?;
        self.changes.push(change);
        Ok(())
    }

    /// Undoes everything, the last change first, and returns what could not be undone. That stays in the file, for
    /// [`restore()`] to try again.
    #[must_use]
    pub fn undo(mut self) -> Vec<Failure> {
        self.undo_all()
    }

    fn undo_all(&mut self) -> Vec<Failure> {
        self.undone = true;
        let failures = self.record.undo(&std::mem::take(&mut self.changes));
        own().retain(|path| path != self.record.path());
        failures
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.persistent && !self.undone {
            self.undo_all();
        }
    }
}

/// Undoes the journals of this process, for a process that is about to end without dropping them. Returns what could
/// not be undone.
pub fn undo_own() -> Vec<Failure> {
    let paths = std::mem::take(&mut *own());
    paths.iter().flat_map(|path| restore::undo_file(path)).collect()
}

/// Journals of this process that are undone at its end.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn own() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
