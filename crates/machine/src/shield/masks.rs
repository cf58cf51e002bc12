//! Threads, by their affinity masks.

use std::io;

use super::Left;
use crate::cpus::Cpus;
use crate::journal::{Change, Journal};
use crate::task::{self, Task};

/// Takes `cpu` from every thread but the calling one. What only ran there gets all other CPUs.
pub(super) fn raise(journal: &mut Journal, cpu: usize, online: &Cpus) -> io::Result<()> {
    journal.remember(Change::descendants())?;
    let rest = online.without(&Cpus::one(cpu));
    // Threads start others meanwhile; what starts after its parent was moved is there already.
    for _ in 0..PASSES {
        let mut moved = false;
        for task in on(cpu).iter().filter(|task| !task.bound) {
            let Ok(now) = task::affinity(task.tid) else { continue };
            let fewer = now.without(&Cpus::one(cpu));
            let fewer = if fewer.is_empty() { rest.clone() } else { fewer };
            // A thread that has ended, or that is not ours to move: it shows in the report.
            moved |= journal.set_affinity(task.tid, &fewer).is_ok();
        }
        if !moved {
            break;
        }
    }
    Ok(())
}

/// Remembers masks that are not everything: kernels before 6.2 forget them when the CPUs of a thread's group change.
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

/// Every thread but the calling one that may run on `cpu`.
pub(super) fn on(cpu: usize) -> Vec<Task> {
    let here = task::current();
    let mut tasks = Task::all();
    tasks.retain(|task| {
        task.tid != here && task::affinity(task.tid).is_ok_and(|affinity| affinity.contains(cpu))
    });
    tasks
}

/// Why these threads are still there.
pub(super) fn left(tasks: &[Task]) -> Vec<Left> {
    let kinds: [(&str, Is); 3] = [
        ("bound to its CPU by the kernel", |task| task.bound && !task.name.starts_with(UNBOUND_WORKER)),
        ("workers the kernel ends once they are idle", |task| {
            task.bound && task.name.starts_with(UNBOUND_WORKER)
        }),
        ("not let go", |task| !task.bound),
    ];
    let of = |(why, is): (&str, Is)| Left {
        what: tasks.iter().filter(|task| is(task)).map(|task| task.name.clone()).collect(),
        why: why.to_owned(),
    };
    kinds.into_iter().map(of).filter(|left| !left.what.is_empty()).collect()
}

type Is = fn(&Task) -> bool;

/// What the names of workers begin with that the mask of the workqueues moves.
const UNBOUND_WORKER: &str = "kworker/u";

/// Looks at all threads at most.
const PASSES: usize = 5;
