//! `onbeat explain`: a running cycle is asked why it was late.
//!
//! `onbeat run --watch`: what disturbs the cycle and the devices' tasks.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use onbeat::ipc::diagnostics::{Diagnostics, TaskDiagnostics};
use serde_json::Value;

use crate::common::{
    Ran, Running, alone, await_cycles, file, finished, folder, number, onbeat, run, run_alone, shared,
};
use crate::robots::Robot;

/// A run on a simulated bus, with its interface in a separate folder.
struct AskedRun {
    running: Running,
    socket: String,
}

impl AskedRun {
    fn start(test: &str, arguments: &[&str]) -> Self {
        let socket = folder(&format!("why-{test}")).join("robot.sock").to_str().unwrap().to_owned();
        let mut command = onbeat();
        command.args(["run", "--time", "host", "--profile", "none", "--json", "--ipc", &socket]);
        let running = Running::start({
            command.args(arguments);
            command
        });
        // More than bring-up takes.
        await_cycles(running.id(), 1_500);
        Self { running, socket }
    }

    fn explain(&self, arguments: &[&str]) -> Ran {
        let mut command = onbeat();
        command.arg("explain").args(arguments).args(["--cycle", &self.socket]);
        finished(command)
    }

    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill").args([name, &self.running.id().to_string()]).status().unwrap().success()
        );
    }

    /// Stops the whole process for a while, and lets it look at what happened.
    fn stall(&self, time: Duration) {
        self.signal("-STOP");
        thread::sleep(time);
        self.signal("-CONT");
        thread::sleep(Duration::from_millis(500));
    }
}

fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A run without --explain: records alone name the stall and its length.
// feature(explain): `onbeat explain` asks a running cycle why it was late, also one without --explain
#[test]
fn a_stopped_process_is_named_with_the_length_of_its_stall() {
    let _shared = shared();
    let run = AskedRun::start("stall", &[]);
    run.stall(Duration::from_millis(400));
    let answer = json(&run.explain(&["--json"]));
    assert_eq!(answer["source"], "records", "{answer}");
    assert_eq!(answer["process"], run.running.id());
    let late = answer["late"].as_array().unwrap();
    let worst = late.iter().max_by_key(|it| it["late_ns"].as_u64()).unwrap();
    let cause = &worst["causes"][0];
    assert_eq!(
        (cause["kind"].as_str(), cause["name"].as_str()),
        (Some("stall"), Some("process")),
        "{worst}"
    );
    // All of it, but for the time until the next look was due.
    assert!(cause["ns"].as_u64().unwrap() >= 300_000_000, "{worst}");
    let kinds: Vec<&Value> = answer["by_cause"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&"stall".into()), "{answer}");
    assert!(answer["remedies"].as_array().unwrap().iter().any(|it| it["kind"] == "stall"), "{answer}");

    let ran = run.explain(&["--last", "10min"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in
        [" late: the whole process stalled ", "Do not stop or freeze the process", "--explain as root"]
    {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    assert_eq!(ran.stderr, "");
}

/// The span is kept: a stall before it is not in it.
#[test]
fn only_late_cycles_of_the_last_time_are_named() {
    let _shared = shared();
    let run = AskedRun::start("span", &[]);
    run.stall(Duration::from_millis(400));
    let length = |answer: &Value| answer["last"]["worst_ns"].as_u64().unwrap();
    let stall = length(&json(&run.explain(&["--json"])));
    thread::sleep(Duration::from_secs(3));
    let answer = json(&run.explain(&["--json", "--last", "1s"]));
    assert!(length(&answer) < stall, "{answer}");
    assert_eq!(answer["last"]["span_ns"], 1_000_000_000);
    assert_eq!(answer["run"]["worst_ns"].as_u64().max(Some(stall)), answer["run"]["worst_ns"].as_u64());
}

/// With a limit that no cycle exceeds.
#[test]
fn a_cycle_that_was_never_late_says_so_with_its_figures() {
    let _shared = shared();
    let run = AskedRun::start("never", &["--explain", "--late-above", "60min"]);
    let ran = run.explain(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let first = ran.stdout.lines().next().unwrap();
    assert!(first.starts_with("last ") && first.contains(": no cycle of "), "{}", ran.stdout);
    assert!(first.contains(", the worst ") && first.ends_with("; period 1.0 ms"), "{}", ran.stdout);
    let answer = json(&run.explain(&["--json"]));
    assert_eq!(answer["late"], Value::Array(Vec::new()));
    assert_ne!(answer["source"], "records");
    assert!(answer["last"]["cycles"].as_u64() > Some(0) && answer["last"]["worst_ns"].as_u64() > Some(0));
}

// feature(explain): options of `explain` that cannot have an effect are refused with the reason
#[test]
fn parts_of_a_second_and_a_limit_without_explain_are_refused() {
    for last in ["500ms", "1500ms"] {
        let ran = run(&["explain", "--last", last]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("expected whole seconds, as 1s"), "{}", ran.stderr);
    }
    let ran = run(&["run", "--cycles", "1", "--late-above", "1ms"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--explain"), "{}", ran.stderr);
}

#[test]
fn without_a_cycle_explain_names_the_remedy() {
    let nowhere = folder("why-nobody").join("none.sock");
    let ran = run(&["explain", "--cycle", nowhere.to_str().unwrap()]);
    assert!(ran.sentence().contains("onbeat run"), "{}", ran.stderr);
    let other = file("why-other.toml", &std::fs::read_to_string("../../examples/six-axis.toml").unwrap());
    let text = std::fs::read_to_string(&other).unwrap().replacen("six-axis", "nobody-runs-this", 1);
    std::fs::write(&other, text).unwrap();
    let ran = run(&["explain", other.to_str().unwrap()]);
    assert!(ran.sentence().contains("nobody-runs-this"), "{}", ran.stderr);
}

#[test]
fn bad_times_of_last_are_refused() {
    for (bad, expected) in [
        ("0s", "expected at least"),
        ("-1s", "expected a number and a unit"),
        ("soon", "expected a number and a unit"),
        ("10", "expected a number and a unit"),
    ] {
        let ran = run(&["explain", &format!("--last={bad}")]);
        assert_eq!(ran.code, Some(2), "{bad}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{bad}: {}", ran.stderr);
    }
}

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
        thread::sleep(Duration::from_millis(50));
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
    // Two lines of titles, and an empty one behind the table.
    let table = ran.stdout.lines().skip_while(|line| !line.contains("preempted")).skip(2);
    let rows = table.take_while(|line| !line.is_empty()).map(|line| line.split_whitespace().collect());
    let rows: Vec<Vec<&str>> = rows.collect();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), TASKS, "{}", ran.stdout);
    assert!(rows.iter().all(|row| row.len() == 7), "{}", ran.stdout);

    let end = run_alone(&["run", "examples/m4k.toml", "--cycles", "300", "--json"]).json();
    let tasks = end["tasks"].as_array().unwrap();
    assert_eq!(tasks.len(), TASKS.len());
    assert!(tasks.iter().all(|task| task["watched"] == Value::Null && task["disturbances"].is_object()));
}
