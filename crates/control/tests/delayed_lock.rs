//! The example of delayed locking, run.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

#[path = "../examples/delayed_lock.rs"]
mod delayed_lock;

// feature(tasks): delayed locking: a task and an ordinary thread share data, and the task never waits; an example shows it
#[test]
fn the_example_changes_all_it_wants_and_no_period_sees_half_a_change() {
    let counts = delayed_lock::run().unwrap();
    assert_eq!((counts.changes, counts.half), (200, 0));
    // A change every 0.7 ms, and the task is inside for 0.5 ms of every 2 ms.
    assert!(counts.waited > 0 && counts.longest.as_micros() > 50, "{counts:?}");
    assert!(counts.periods > counts.without, "{counts:?}");
}
