//! Undoing the journals of dead processes.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs, io};

use rustix::fs::{FlockOperation, flock};
use rustix::process::geteuid;

use super::change::{Change, Failure, Restored};
use super::record::{Header, Record, journals};
use super::{DIRECTORY, group, record};
use crate::task::Task;

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
    let mut removed = remove_all(directory);
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

/// Removes them, and returns what was undone.
pub(super) fn remove_all(directory: &Path) -> Vec<Restored> {
    // In a PID namespace the threads of living shields may be out of sight; the kernel's are then,
    // too.
    let sees_all = Task::read(KTHREADD).is_some_and(|task| task.of_kernel);
    let Some(journals) = journals(directory).ok().filter(|_| sees_all && geteuid().is_root()) else {
        return Vec::new();
    };
    let texts = journals.into_iter().filter_map(|path| fs::read(path).ok());
    let remembered = texts.map(|text| String::from_utf8_lossy(&text).into_owned()).collect::<String>();
    let roots = [Some("cpuset"), None].into_iter().filter_map(group::mount);
    roots.flat_map(|root| remove_below(&root, &remembered, OLD)).collect()
}

/// Removes groups below the root of a hierarchy that are older than `age` and not named in
/// `remembered`.
pub(super) fn remove_below(root: &Path, remembered: &str, age: Duration) -> Vec<Restored> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
    let groups: Vec<Orphan> = entries.filter_map(Orphan::named).collect();
    let lives = |thread: i32| groups.iter().any(|it| it.thread == thread && it.is_in_use());
    let is_orphan = |it: &&Orphan| {
        let name = it.path.file_name().unwrap_or_default().to_string_lossy();
        !lives(it.thread) && it.is_older(age) && !remembered.contains(&*name)
    };
    let restored: Vec<_> = groups.iter().filter(is_orphan).map(Orphan::remove).collect();
    let all_gone = !restored.is_empty() && !groups.iter().any(|it| it.path.exists());
    // The shield switched it off. A group that another program shields itself with needs it so.
    let balance = root.join("cpuset.sched_load_balance");
    if all_gone && balance.exists() && !has_groups(root) {
        let _ = fs::write(balance, "1");
    }
    restored
}

/// Control group with a name that shields give theirs.
struct Orphan {
    path: PathBuf,
    /// True for the group of the thread that has the CPU, false for that of all others.
    own: bool,
    /// Process that made it; for the group of the shielded CPU only the thread is known.
    process: i32,
    thread: i32,
}

impl Orphan {
    fn named(path: PathBuf) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let own = name.starts_with("onbeat-cpu-");
        let numbers = name.strip_prefix("onbeat-cpu-").or_else(|| name.strip_prefix("onbeat-rest-"))?;
        let (first, thread) = numbers.split_once('-')?;
        let (first, thread) = (first.parse().ok()?, thread.parse().ok()?);
        Some(Self { own, process: if own { thread } else { first }, thread, path })
    }

    /// True while the thread of the shield lives: it is in its own group.
    fn is_in_use(&self) -> bool {
        let lists = group::LISTS.map(|name| fs::read_to_string(self.path.join(name)).unwrap_or_default());
        self.own && lists.iter().any(|list| !list.is_empty())
    }

    /// A shield that is being raised has no thread in its group yet.
    fn is_older(&self, age: Duration) -> bool {
        let made = fs::metadata(&self.path).and_then(|found| found.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|elapsed| elapsed >= age))
    }

    fn remove(&self) -> Restored {
        let failure: Option<Failure> = Change::Directory { path: self.path.clone() }.undo(&[]).err();
        Restored {
            what: format!("control group {}, in no journal", self.path.display()),
            pid: self.process.unsigned_abs(),
            persistent: false,
            changes: 1,
            failures: failure.into_iter().collect(),
        }
    }
}

fn has_groups(root: &Path) -> bool {
    let mut entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries.any(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
}

/// Id of the thread that starts the kernel's threads, in the first PID namespace.
const KTHREADD: i32 = 2;

/// Age of a group with a shield that is complete, or was abandoned.
const OLD: Duration = Duration::from_secs(60);
