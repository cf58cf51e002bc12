//! System calls of the real-time tasks of all five devices by strace, with all ports in use: one a
//! period, the sleep.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::time::Duration;

use support::{Robot, Users, five_every};
use testkit::strace::{self, Trace};

/// Fewest jobs of each task between the two marks.
const JOBS: u64 = 50;

// feature(devices): their real-time tasks neither allocate nor call the system
#[test]
fn real_time_device_tasks_only_make_the_sleep_system_call() {
    let trace = match Trace::of_test("devices_under_strace", |strace| strace) {
        Ok(trace) => trace,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let told: Vec<(&str, i32, u64)> = trace.stdout.lines().filter_map(task).collect();
    assert_eq!(told.len(), 5, "{}", trace.stdout);
    for (name, number, jobs) in told {
        let calls = trace.calls_of(number);
        let slept = calls.get("clock_nanosleep").copied().unwrap_or(0);
        assert_eq!(calls.len(), 1, "{name}: {calls:?}");
        // A mark may cut off a job at either end; a job that overran its next release did not sleep
        // for it.
        assert!(
            jobs >= JOBS && slept <= jobs + 2 && slept + jobs / 2 >= jobs,
            "{name}: {jobs} jobs, {calls:?}"
        );
    }
}

/// Parses `task imu 1234 57`: name, thread id of the kernel, jobs between the marks.
fn task(line: &str) -> Option<(&str, i32, u64)> {
    let mut words = line.split_whitespace();
    words.find(|word| *word == "task")?;
    Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[test]
#[ignore = "a part of the test above, which starts it under strace"]
fn devices_under_strace() {
    // strace slows every system call.
    let robot = Robot::start("strace", &five_every(Duration::from_millis(20)));
    let mut users = Users::of(&robot);
    users.for_jobs(&robot, 5);
    strace::mark();
    let jobs = users.for_jobs(&robot, JOBS);
    strace::mark();
    for (task, jobs) in robot.running.tasks().iter().zip(jobs) {
        println!("task {} {} {jobs}", task.name(), task.tid());
    }
}
