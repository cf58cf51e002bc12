//! Shielding with the affinity masks of threads.

use std::io;

use super::Left;
use crate::cpus::Cpus;
use crate::journal::{Change, Journal};
use crate::task::{self, Task};

/// Removes `cpu` from the masks of all threads but the calling one. A thread that could only run
/// there gets all other CPUs.
pub(super) fn raise(journal: &mut Journal, cpu: usize, online: &Cpus) -> io::Result<()> {
    journal.remember(Change::descendants())?;
    let rest = online.without(&Cpus::one(cpu));
    // Threads start others meanwhile; a thread started after its parent was moved needs no move.
    for _ in 0..PASSES {
        let mut moved = false;
        for task in on(cpu).iter().filter(|task| !task.bound) {
            let Ok(now) = task::affinity(task.tid) else { continue };
            let fewer = now.without(&Cpus::one(cpu));
            let fewer = if fewer.is_empty() { rest.clone() } else { fewer };
            // A thread that has ended, or that may not be moved; the report shows it.
            moved |= journal.set_affinity(task.tid, &fewer).is_ok();
        }
        if !moved {
            break;
        }
    }
    Ok(())
}

/// Records masks that are restricted: kernels before 6.2 forget them when the CPUs of a thread's
/// group change.
pub(super) fn remember(journal: &mut Journal, online: &Cpus) -> io::Result<()> {
    for task in Task::all().iter().filter(|task| !task.bound) {
        if let Some(mask) = task::affinity(task.tid).ok().filter(|mask| mask != online) {
            let (before, after) = (mask.to_string(), online.to_string());
            let change = Change::Affinity { tid: task.tid, started: task.started, before, after };
            journal.remember(change)?;
        }
    }
    Ok(())
}

/// All threads but the calling one that may run on `cpu`.
pub(super) fn on(cpu: usize) -> Vec<Task> {
    let here = task::current();
    let mut tasks = Task::all();
    tasks.retain(|task| {
        task.tid != here && task::affinity(task.tid).is_ok_and(|affinity| affinity.contains(cpu))
    });
    tasks
}

/// Reasons for these threads to stay.
pub(super) fn left(tasks: &[Task]) -> Vec<Left> {
    let kinds: [(&str, Is); 3] = [
        ("bound to its CPU by the kernel", |task| task.bound && !task.name.starts_with(UNBOUND_WORKER)),
        ("workers the kernel ends once they are idle", |task| {
            task.bound && task.name.starts_with(UNBOUND_WORKER)
        }),
        ("refused by the kernel", |task| !task.bound),
    ];
    let of = |(why, is): (&str, Is)| Left {
        what: tasks.iter().filter(|task| is(task)).map(|task| task.name.clone()).collect(),
        why: why.to_owned(),
    };
    kinds.into_iter().map(of).filter(|left| !left.what.is_empty()).collect()
}

type Is = fn(&Task) -> bool;

/// Prefix of the names of workers that follow the mask of the workqueues.
const UNBOUND_WORKER: &str = "kworker/u";

/// Most passes over all threads.
const PASSES: usize = 5;
