//! `onbeat run --watch`: what disturbs the cycle and the devices' tasks.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::time::{Duration, Instant};

use onbeat::ipc::diagnostics::{Diagnostics, TaskDiagnostics};
use serde_json::Value;

use crate::common::{alone, number, run_alone};
use crate::robots::Robot;

const TASKS: [&str; 6] = ["cycle", "sonar", "range_finder", "led_strip", "imu", "actuators"];

fn names(tasks: &[TaskDiagnostics]) -> Vec<&str> {
    tasks.iter().map(|task| task.name.as_str()).collect()
}

// feature(tasks): `--watch` of cycle and devices' tasks; `tasks` in `run --json`
#[test]
fn the_watch_counts_disturbances_of_every_task() {
    let _alone = alone();
    let robot = Robot::run("watched", "examples/m4k.toml", &["--watch"]);
    // Live, for others.
    let started = Instant::now();
    loop {
        let told = robot.ipc.diagnostics().ok();
        let told =
            told.and_then(|text| serde_json::from_str::<Diagnostics>(&text).ok()).unwrap_or_default();
        let watched = told.tasks.iter().all(|task| task.watched.is_some() && task.disturbances.is_some());
        let busy = told.tasks.iter().all(|task| task.jobs > 5);
        if names(&told.tasks) == TASKS && watched && busy {
            break;
        }
        assert!(started.elapsed() < Duration::from_secs(40), "never told: {:?}", told.tasks);
        std::thread::sleep(Duration::from_millis(50));
    }
    let end = robot.end();
    let json = end.json();
    let tasks = json["tasks"].as_array().unwrap();
    for (name, task) in TASKS.iter().zip(tasks) {
        assert_eq!(task["name"], *name);
        let (counted, watched) = (&task["disturbances"], &task["watched"]);
        let jobs = number(task, "jobs");
        // The thread sleeps once for each of its periods, but where a busy machine has it late for
        // the next.
        let slept = number(counted, "voluntary_switches");
        assert!(slept + number(task, "overruns") + jobs / 4 >= jobs && jobs > 5, "{task}");
        for kernels in ["involuntary_switches", "minor_faults", "major_faults"] {
            assert!(counted[kernels].is_u64(), "{kernels} of {name}: {counted}");
        }
        for ours in ["preemptions", "sleeps", "minor_faults", "major_faults"] {
            assert!(watched[ours].is_u64(), "{ours} of {name}: {watched}");
        }
        assert!(number(watched, "preemptions") <= number(counted, "involuntary_switches"), "{task}");
        assert!(number(watched, "minor_faults") <= number(counted, "minor_faults"), "{task}");
        // The tasks only compute: a system call found here is a bug.
        if watched["means"] == "tracepoints" {
            let calls = [number(watched, "system_calls"), number(watched, "blocking_calls")];
            assert_eq!(calls, [0, 0], "{name}: {watched}");
        } else {
            testkit::skip!("system calls of {name}: {}", watched["missing"]);
        }
        let thread =
            if *name == "cycle" { "the cycle's thread".to_owned() } else { format!("task {name}") };
        let said = end.stderr.lines().any(|line| {
            line == format!("nothing disturbed {thread}") || line == format!("disturbances of {thread}:")
        });
        assert!(said, "{name}: {}", end.stderr);
    }
    assert_eq!(tasks.len(), TASKS.len());
}

// feature(tasks): `--watch` of cycle and devices' tasks; `tasks` in `run --json`
#[test]
fn table_has_counts_per_task_and_none_without_a_watch() {
    let ran = run_alone(&["run", "examples/m4k.toml", "--cycles", "300", "--watch"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let table = ran.stdout.lines().skip_while(|line| !line.contains("preemptions"));
    let rows: Vec<Vec<&str>> = table.skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), TASKS, "{}", ran.stdout);
    assert!(rows.iter().all(|row| row.len() == 7), "{}", ran.stdout);

    let end = run_alone(&["run", "examples/m4k.toml", "--cycles", "300", "--json"]).json();
    let tasks = end["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), TASKS.len());
    assert!(tasks.iter().all(|task| task["watched"] == Value::Null && task["disturbances"].is_object()));
}
