//! `onbeat measure tasks`, `wakeup`, `ipc` and `interrupt`: short, as JSON and in a folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Running, alone, measure, of_the_paper};

/// The report of an experiment, and the folder it is in.
fn measured(arguments: &[&str]) -> (Value, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("measure-{}", arguments[0]));
    let _ = std::fs::remove_dir_all(&folder);
    let mut command = measure();
    command.args(arguments).arg("--json").arg("--out").arg(&folder);
    let _alone = alone();
    let ran = Running::start(command).finish_within(Duration::from_secs(300));
    let report = ran.json();
    assert_eq!(report["experiment"], arguments[0], "{}", ran.stderr);
    for line in ["measured", "good"] {
        assert!(report[line].as_str().is_some_and(|text| !text.is_empty()), "{line}");
    }
    let figures: &[&str] = match arguments[0] {
        "tasks" => &["Table 2", "Table 3"],
        "ipc" => &["Table 4", "Table 5"],
        "interrupt" => &["Figures 6 and 7"],
        _ => &[],
    };
    if !figures.is_empty() {
        assert_eq!(of_the_paper(&report), figures);
    }
    assert!(["report.md", "report.json", "report.html"].iter().all(|name| folder.join(name).exists()));
    (report, folder)
}

/// Names of what `list` of the values holds.
fn names<'a>(report: &'a Value, list: &str, key: &str) -> Vec<&'a str> {
    let list = report["values"][list].as_array().expect("a list");
    list.iter().map(|it| it[key].as_str().expect("a name")).collect()
}

#[test]
fn tasks_are_measured_next_to_computed_response_times() {
    let (report, folder) = measured(&["tasks", "--duration", "300ms"]);
    assert_eq!(names(&report, "tasks", "name"), ["tau1", "tau2", "tau1", "tau2"]);
    assert_eq!(names(&report, "tasks", "busy")[1..3], ["blocks", "processor-time"]);
    let tasks = &report["values"]["tasks"];
    assert_eq!(
        (&tasks[0]["computed_response_ns"], &tasks[1]["computed_response_ns"]),
        (&500_000.into(), &3_000_000.into())
    );
    assert_eq!(
        (&tasks[0]["response_ns"]["count"], &tasks[1]["response_ns"]["count"]),
        (&300.into(), &60.into())
    );
    assert!(folder.join("tau2-blocks.mcap").exists());
    let mut command = measure();
    command.args(["tasks", "--duration", "1000000s", "--out"]).arg(&folder);
    let ran = Running::start(command).finish_within(Duration::from_secs(60));
    assert!(ran.stderr.contains("choose a shorter --duration"), "{}", ran.stderr);
}

#[test]
fn wakeups_are_measured_with_and_without_spinning() {
    let (report, folder) = measured(&["wakeup", "--samples", "100", "--rounds", "2", "--period", "500us"]);
    let contenders = names(&report, "contenders", "name");
    assert!(contenders.contains(&"our pacer") && contenders.contains(&"our pacer with S (spinning sleep)"));
    assert_eq!(report["values"]["contenders"][0]["wakeup_latency_ns"]["count"], 100);
    assert!(folder.join("ours-spinning.mcap").exists());
}

#[test]
fn all_mechanisms_are_called_and_woken_by() {
    let (report, folder) =
        measured(&["ipc", "--samples", "40", "--rounds", "1", "--within", "50ms", "--messages", "20"]);
    let mechanisms = names(&report, "mechanisms", "name");
    assert_eq!(
        mechanisms,
        [
            "semaphore",
            "mutex",
            "mutex (priority inheritance)",
            "POSIX message queue",
            "pipe",
            "futex",
            "eventfd"
        ]
    );
    assert_eq!(names(&report, "ipc", "name").len(), 5);
    assert_eq!(names(&report, "within_two_tasks", "means").len(), 5);
    assert_eq!(names(&report, "periodic_sender", "mechanism")[5], "our port, waking by an event");
    assert!(folder.join("pipe-higher-priority.mcap").exists());
}

#[test]
fn interrupts_are_measured_and_bad_gpio_lines_refused() {
    let (report, folder) = measured(&["interrupt", "--samples", "40"]);
    assert_eq!(names(&report, "cells", "from")[..3], TIMERS);
    assert!(folder.join("timer-timerfd.mcap").exists());
    let mut command = measure();
    command.args(["interrupt", "--gpio-input", "seventeen"]);
    let ran = Running::start(command).finish_within(Duration::from_secs(60));
    assert!(ran.stderr.contains("expected a GPIO line as gpiochip0:17"), "{}", ran.stderr);
}

const TIMERS: [&str; 3] = ["timer: clock_nanosleep", "timer: timerfd", "timer: POSIX timer, signal"];
