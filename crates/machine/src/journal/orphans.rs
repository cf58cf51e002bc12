//! Control groups of dead shields that no journal lists: the journal was removed, or it was in
//! another namespace.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;

use super::change::{Change, Failure, Restored};
use super::group;
use super::record::journals;
use crate::mounts;
use crate::task::Task;

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
    let roots = [Some("cpuset"), None].into_iter().filter_map(mounts::mount);
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
