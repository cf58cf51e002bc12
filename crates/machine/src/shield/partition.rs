//! Shielding with an isolated partition of cgroup v2: Documentation/admin-guide/cgroup-v2.rst,
//! "Cpuset".
//!
//! The kernel removes the CPUs of a valid partition from all groups outside it, and returns them
//! when it ends. The partition is a threaded group below the root, so that a single thread can be
//! in it; its process has to be in the root for that, and is moved there.

use std::path::Path;
use std::{fs, io};

use super::masks;
use crate::cpus::Cpus;
use crate::journal::{Change, Journal, group};
use crate::task::{self, Task};

pub(super) fn raise(journal: &mut Journal, cpu: usize, online: &Cpus) -> io::Result<()> {
    let root = group::mount(None).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    if !words(&root.join("cgroup.controllers"))?.iter().any(|name| name == "cpuset") {
        return Err(io::Error::from(io::ErrorKind::Unsupported));
    }
    masks::remember(journal, online)?;
    let subtree = root.join("cgroup.subtree_control");
    if !words(&subtree)?.iter().any(|name| name == "cpuset") {
        let undo = ["sh", "-c", "echo -cpuset > \"$0\"", &subtree.to_string_lossy()];
        journal.make_with(Change::command(&undo), || fs::write(&subtree, "+cpuset"))?;
    }
    let here = task::current();
    let group = root.join(format!("onbeat-cpu-{cpu}-{here}"));
    journal.make_directory(&group)?;
    fs::write(group.join("cgroup.type"), "threaded")?;
    fs::write(group.join("cpuset.cpus"), cpu.to_string())?;
    // A thread can only be in its process's group, here the root, and threaded groups below it.
    let before = group::own(None).unwrap_or_default();
    let process = std::process::id() as i32;
    if before != "/" {
        let from = root.join(before.trim_start_matches('/')).join("cgroup.procs");
        let started = Task::read(process).map_or(0, |task| task.started);
        let change = Change::Attached { id: process, started, from };
        journal.make_with(change, || fs::write(root.join("cgroup.procs"), process.to_string()))?;
    }
    let partition = group.join("cpuset.cpus.partition");
    journal.remember(Change::File { path: partition.clone(), before: Some("member".to_owned()) })?;
    fs::write(&partition, "isolated")?;
    let state = fs::read_to_string(&partition)?;
    if state.trim() != "isolated" {
        return Err(io::Error::other(format!("the partition is not valid: {}", state.trim())));
    }
    let threads = group.join("cgroup.threads");
    journal.remember(Change::Moved { from: root.join("cgroup.threads"), to: threads.clone() })?;
    fs::write(&threads, here.to_string())
}

fn words(path: &Path) -> io::Result<Vec<String>> {
    Ok(fs::read_to_string(path)?.split_whitespace().map(str::to_owned).collect())
}
