//! Journal of changes to the machine, recorded before they are made, and undone from it.
//!
//! A [`Journal`] is a file below `/run/onbeat`: a line for each change, synced to the file before
//! the change is made. Dropping the journal undoes its changes, the last one first, and removes the
//! file. The journal of a killed process stays, and [`restore()`] undoes it. A living process is
//! recognised by the lock it holds on its file, which the kernel releases with the process, however
//! it ended.
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
//! | module | contents |
//! |---|---|
//! | `change` | a change, and its undoing |
//! | `group` | emptying and removal of control groups |
//! | `orphans` | control groups of dead shields that no journal remembers |
//! | `record` | the file: header, changes, lock |
//! | `restore` | undoing the journals of dead processes |

mod change;
mod group;
mod orphans;
mod record;
mod restore;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

pub(crate) use change::Change;
pub use change::{CpuFormat, Failure, Restored};
pub(crate) use group::move_all;
pub(crate) use restore::claimed;
pub use restore::{LeftBehind, Restoration, left_behind, restore, restore_crashed, restore_in};

use crate::cpus::Cpus;
use crate::ethtool::{self, Setting, Value};
use crate::task::{self, Scheduling, Task};
use record::Record;

/// Folder of the journals: cleared at the next boot, as are the changes.
pub const DIRECTORY: &str = "/run/onbeat";

/// Journal that undoes its changes when it is dropped. Changes of a [`Journal::persistent`] one
/// stay until they are restored.
#[derive(Debug)]
pub struct Journal {
    record: Record,
    changes: Vec<Change>,
    /// True if it outlives the process.
    persistent: bool,
    undone: bool,
}

impl Journal {
    /// Creates an empty journal below [`DIRECTORY`]; `what` names the purpose of its changes in a
    /// few words.
    ///
    /// # Errors
    /// The folder or the file cannot be made; root is required.
    pub fn begin(what: &str) -> io::Result<Self> {
        Self::begin_in(Path::new(DIRECTORY), what)
    }

    /// Creates a journal as [`Journal::begin`] does, in another folder.
    ///
    /// # Errors
    /// The folder or the file cannot be made.
    pub fn begin_in(directory: &Path, what: &str) -> io::Result<Self> {
        Self::new(directory, what, false)
    }

    /// Creates a journal with changes that outlive the process: [`restore()`] undoes them.
    ///
    /// # Errors
    /// The folder or the file cannot be made; root is required.
    pub fn persistent(what: &str) -> io::Result<Self> {
        Self::persistent_in(Path::new(DIRECTORY), what)
    }

    /// Creates a journal as [`Journal::persistent`] does, in another folder.
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

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.record.path()
    }

    /// Number of changes recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// True if nothing was changed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Writes `value` to a file; the old content is recorded. A missing file is created, and the
    /// undo removes it. For a file with choices, such as `always [madvise] never`, the old choice
    /// is recorded.
    ///
    /// # Errors
    /// The old content cannot be read, or the new one is refused; nothing was changed.
    pub fn write(&mut self, path: &Path, value: &str) -> io::Result<()> {
        let before = match fs::read_to_string(path) {
            Ok(text) => Some(change::chosen(&text).to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        self.make_with(Change::File { path: path.to_owned(), before }, || fs::write(path, value))
    }

    /// Restricts a thread to these CPUs. The undo returns the CPUs that this call removed, and
    /// removes the CPUs that it added; a later change to other CPUs stays.
    ///
    /// # Errors
    /// ESRCH if the thread does not exist (any more), EINVAL if the kernel has bound it, EPERM.
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

    /// Writes a set of CPUs to a file. Undone as [`Journal::set_affinity`].
    ///
    /// # Errors
    /// The old set cannot be read, or the new one is refused; nothing was changed.
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

    /// Changes the scheduling of a thread.
    ///
    /// # Errors
    /// ESRCH if the thread does not exist (any more), EPERM.
    pub fn set_scheduling(&mut self, tid: i32, scheduling: Scheduling) -> io::Result<()> {
        let task = Task::read(tid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
        let change = Change::Scheduling { tid, started: task.started, before: task::scheduling(tid)? };
        self.make_with(change, || task::set_scheduling(tid, scheduling))
    }

    /// Changes settings of an interface's driver, all of one block.
    ///
    /// # Errors
    /// The errors of [`ethtool::set_settings`]; nothing was changed.
    pub fn set_driver(&mut self, interface: &str, values: &[Value]) -> io::Result<()> {
        let settings: Vec<Setting> = values.iter().map(|(setting, _)| *setting).collect();
        let before = ethtool::read_settings(interface, &settings)?;
        let change = Change::Driver { interface: interface.to_owned(), before };
        self.make_with(change, || ethtool::set_settings(interface, values))
    }

    /// Makes a folder (a control group), which is removed on undo.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        self.make_with(Change::Directory { path: path.to_owned() }, || fs::create_dir(path))
    }

    /// Runs a command; `undo`, program and arguments, is run on undo.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub fn run(&mut self, command: &mut Command, undo: &[&str]) -> io::Result<()> {
        self.make_with(Change::command(undo), || change::succeed(command))
    }

    /// Records `change`, then makes it; the record of a failed change is removed.
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

    /// Records a change that is about to be made.
    pub(crate) fn remember(&mut self, change: Change) -> io::Result<()> {
        self.record.append(&change)?;
        self.changes.push(change);
        Ok(())
    }

    /// Undoes all changes, the last one first, and returns the failures. Changes that a later try
    /// may undo stay in the file, for [`restore()`] to retry.
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

/// Undoes the journals of this process, for a process that is about to end without dropping them.
/// Returns the changes that could not be undone.
pub fn undo_own() -> Vec<Failure> {
    let paths = std::mem::take(&mut *own());
    paths.iter().flat_map(|path| Record::undo_own(path)).collect()
}

/// Journals of this process to be undone at its end.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn own() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
