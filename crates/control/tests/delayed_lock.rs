//! The example of delayed locking, run.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

#[path = "../examples/delayed_lock.rs"]
mod delayed_lock;

// feature(tasks): delayed locking: a task and an ordinary thread share data, and the task never waits; an example shows it
#[test]
fn the_example_changes_all_it_wants_and_no_period_sees_half_a_change() {
    let counts = delayed_lock::run().unwrap();
    assert!(counts.changes >= 200 && counts.half == 0, "{counts:?}");
    // Changes fall everywhere in the 2 ms of a period, and none may begin in 0.7 ms of them.
    assert!(counts.waited > 0 && counts.longest.as_micros() > 50, "{counts:?}");
    assert!(counts.periods > counts.without, "{counts:?}");
}

/// On one CPU thread and task take turns; changes that are as far from each other as from the next period then never wait.
#[test]
fn on_one_cpu_it_meets_the_task_too() {
    let all = sched_getaffinity(None).unwrap();
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| all.is_set(cpu)).unwrap();
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).unwrap();
    let counts = delayed_lock::run().unwrap();
    assert!(counts.waited > 2 && counts.half == 0, "{counts:?}");
}
