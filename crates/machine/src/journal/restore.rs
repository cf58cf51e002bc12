//! Undoing the journals of dead processes.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::change::{Change, Restored};
use super::record::{self, Header, Record, journals};
use super::{DIRECTORY, orphans};

/// Journals undone and refused.
#[derive(Debug, Default)]
pub struct Restoration {
    /// Journals that were undone.
    pub restored: Vec<Restored>,
    /// Files that are no journal, or not owned by this user alone, each by name; nothing in them
    /// was undone.
    pub refused: Vec<io::Error>,
}

/// Journal of a killed process with changes that are not undone yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftBehind {
    /// Purpose of its changes.
    pub what: String,
    /// Id of the process that made them.
    pub pid: u32,
    /// Number of changes.
    pub changes: usize,
}

impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, pid, changes } = self;
        write!(f, "{what}, left behind by process {pid}, which was killed: {changes} changes remain")
    }
}

/// Changes that [`restore_crashed`] would undo.
///
/// # Errors
/// The errors of [`restore`].
pub fn left_behind() -> io::Result<Vec<LeftBehind>> {
    left_behind_in(Path::new(DIRECTORY))
}

pub(super) fn left_behind_in(directory: &Path) -> io::Result<Vec<LeftBehind>> {
    let look = |path: PathBuf| {
        let (header, changes) = read_if(&path, false)?;
        let stands = !header.persistent && header.boot == record::boot();
        stands.then_some(LeftBehind { what: header.what, pid: header.pid, changes: changes.len() })
    };
    Ok(journals(directory)?.into_iter().filter_map(look).collect())
}

/// Undoes the changes left by dead processes, and the changes of persistent journals.
///
/// # Errors
/// The folder of the journals cannot be read, or others may write to it.
pub fn restore() -> io::Result<Restoration> {
    restore_all(true)
}

/// Undoes the changes left by killed processes; changes of persistent journals stay.
///
/// # Errors
/// The errors of [`restore`].
pub fn restore_crashed() -> io::Result<Restoration> {
    restore_all(false)
}

/// Removes groups of dead shields first: a thread in one of them cannot have its CPUs back.
fn restore_all(persistent: bool) -> io::Result<Restoration> {
    let directory = Path::new(DIRECTORY);
    let mut removed = orphans::remove_all(directory);
    let mut restoration = restore_in(directory, persistent)?;
    removed.append(&mut restoration.restored);
    restoration.restored = removed;
    Ok(restoration)
}

/// Does the work of [`restore`] (`persistent`) or [`restore_crashed`] in another folder.
///
/// # Errors
/// The errors of [`restore`].
pub fn restore_in(directory: &Path, persistent: bool) -> io::Result<Restoration> {
    let mut restoration = Restoration::default();
    for path in journals(directory)? {
        let (mut record, changes) = match Record::take_over(&path) {
            Ok(Some(taken)) => taken,
            Ok(None) => continue,
            Err(error) => {
                restoration.refused.push(error);
                continue;
            }
        };
        let header = record.header().clone();
        if header.boot != record::boot() {
            record.remove();
        } else if persistent || !header.persistent {
            let failures = record.undo(&changes);
            restoration.restored.push(Restored {
                what: header.what,
                pid: header.pid,
                persistent: header.persistent,
                changes: changes.len(),
                failures,
            });
        }
    }
    Ok(restoration)
}

/// Id of the living process that has claimed `cpu`, if there is one.
pub(crate) fn claimed(cpu: usize) -> Option<u32> {
    journals(Path::new(DIRECTORY)).ok()?.into_iter().find_map(|path| {
        let (header, changes) = read_if(&path, true)?;
        changes.contains(&Change::Claim { cpu }).then_some(header.pid)
    })
}

/// Reads the journal of a process that is `living`, or of one that is not; `None` of others, and of
/// files that are none.
fn read_if(path: &Path, living: bool) -> Option<(Header, Vec<Change>)> {
    let file = record::open(path).ok()?;
    let dead = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    if dead {
        // Unlocked at once: a process that undoes the journal meanwhile must not take this lock for
        // a living owner.
        let _ = flock(&file, FlockOperation::Unlock);
    }
    if dead == living { None } else { record::read(&file, path).ok() }
}
