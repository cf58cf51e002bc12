//! Shielding with a cpuset of cgroup v1: cpuset(7).
//!
//! Two groups are made below the root: one for the CPU, with the calling thread, and one for all
//! others. Groups made by other programs lose the CPU. Load balancing of the root is switched off,
//! so that the scheduler of the CPU has no other CPU to balance with.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::masks;
use crate::cpus::Cpus;
use crate::journal::{Change, CpuFormat, Journal, group, move_all};
use crate::task;

pub(super) fn raise(journal: &mut Journal, cpu: usize, online: &Cpus) -> io::Result<()> {
    let root = group::mount(Some("cpuset")).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let memory = fs::read_to_string(root.join("cpuset.mems"))?;
    let tasks = root.join("tasks");
    let here = task::current();
    masks::remember(journal, online)?;

    for group in groups_below(&root) {
        let path = group.join("cpuset.cpus");
        let now = CpuFormat::List.read(&path)?;
        let fewer = now.without(&Cpus::one(cpu));
        // A group with this CPU alone is another program's shield, or empty.
        if now.contains(cpu) && !fewer.is_empty() {
            journal.set_cpus(&path, CpuFormat::List, &fewer)?;
        }
    }
    let rest = root.join(format!("onbeat-rest-{}-{here}", std::process::id()));
    let own = root.join(format!("onbeat-cpu-{cpu}-{here}"));
    for (group, cpus) in [(&rest, online.without(&Cpus::one(cpu))), (&own, Cpus::one(cpu))] {
        journal.make_directory(group)?;
        fs::write(group.join("cpuset.mems"), memory.trim())?;
        fs::write(group.join("cpuset.cpus"), cpus.to_string())?;
    }
    // Recorded first, so that the threads move back before the folders are removed.
    journal.remember(Change::Moved { from: tasks.clone(), to: rest.join("tasks") })?;
    // The kernel refuses to move some of its own threads.
    let _ = move_all(&tasks, &rest.join("tasks"))?;
    let before = root.join(group::own(Some("cpuset")).unwrap_or_default().trim_start_matches('/'));
    journal.remember(Change::Moved { from: before.join("tasks"), to: own.join("tasks") })?;
    fs::write(own.join("tasks"), here.to_string())?;
    // Refused if groups of other programs overlap: the threads are moved away all the same.
    let _ = fs::write(own.join("cpuset.cpu_exclusive"), "1");
    let _ = journal.write(&root.join("cpuset.sched_load_balance"), "0");
    Ok(())
}

/// All groups below `root`, the innermost first.
fn groups_below(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let below = |folder: PathBuf| {
        let mut groups = groups_below(&folder);
        groups.push(folder);
        groups
    };
    folders.flat_map(|entry| below(entry.path())).collect()
}
