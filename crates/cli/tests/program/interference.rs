//! `onbeat measure interference`: the whole system, and what is left of it when one of its parts
//! dies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::{Ran, alone, finished, measure, of_the_paper};

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

fn interference(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = measure();
    command.args(["interference", "--json", "--period", "1ms", "--out"]).arg(folder).args(arguments);
    command
}

/// True if the machine takes no cable; then it has said so.
fn refused(ran: &Ran) -> bool {
    let reasons = ["a network namespace for the", "`ip "];
    let refused = ran.code == Some(1) && reasons.iter().any(|reason| ran.stderr.contains(reason));
    if refused {
        testkit::skip!("{}", ran.stderr.trim());
    }
    refused
}

// feature(measure): `measure interference`: independent observer, regression, moving average, covariance identity
#[test]
fn two_loads_are_measured_and_the_identity_holds() {
    let _alone = alone();
    let folder = folder("interference");
    let ran = finished(interference(&folder, &["--samples", "2000", "--load", "none,cpu"]));
    if refused(&ran) {
        return;
    }
    let report = ran.json();
    assert_eq!(of_the_paper(&report), ["Table I", "Table II", "Table III", "identity"]);
    let cells = report["values"]["cells"].as_array().expect("cells");
    assert_eq!(cells.iter().map(|cell| &cell["load"]).collect::<Vec<_>>(), ["none", "cpu"]);
    for cell in cells {
        assert_eq!((&cell["cycles"], &cell["jitter"]["count"]), (&2000.into(), &2000.into()), "{cell}");
        assert_eq!(
            (&cell["observer"]["kernel_dropped"], &cell["observer"]["rows_dropped"]),
            (&0.into(), &0.into())
        );
        assert!(cell["oscillator_difference_ppm"].is_number() && cell["cycle"]["cycles"] == 2000, "{cell}");
        let number = |value: &Value| value.as_f64().expect("a number");
        assert!(number(&cell["identity"]["relative_difference"]) < 1e-6, "{cell}");
        assert!(number(&cell["jitter"]["minimum_ns"]) < 0.0 && number(&cell["jitter"]["maximum_ns"]) > 0.0);
    }
    // The work of the loads is reported.
    assert!(cells[0]["work"].is_null(), "{}", cells[0]);
    let work = &cells[1]["work"];
    assert!(work["what"] == "floating-point turns" && work["rate"].as_f64() > Some(1e3), "{work}");
    // A terminal of the same bus stamped the edges by its own clock, with a drift of 20 ppm at
    // most.
    for cell in cells {
        let edges = cell["edges"].as_array().expect("edges");
        let found: Vec<_> =
            edges.iter().map(|it| (it["name"].as_str().expect("a name"), &it["cycles"])).collect();
        let (two, four, one) = (&Value::from(2), &Value::from(4), &Value::from(1));
        let expected =
            [("input 1 rose", two), ("input 1 fell", two), ("input 2 rose", four), ("input 2 fell", four)];
        assert_eq!((&found[..4], found[4]), (&expected[..], ("the cycle's own stamps", one)));
        // Releases skipped by a host stall have edges as well, or lack them.
        let skipped = cell["cycle"]["skipped_releases"].as_u64().expect("a count");
        for (it, cycles) in edges.iter().zip([2, 2, 4, 4, 1]) {
            let count = it["edges"].as_u64().expect("a count") + it["missing"].as_u64().expect("a count");
            let expected = 2000 / cycles - 30..=(2000 + skipped) / cycles + 30;
            assert!(expected.contains(&count), "{skipped} skipped: {it}");
            let ppm = it["oscillator_difference_ppm"].as_f64().expect("a number");
            assert!(ppm.abs() < 500.0, "{it}");
        }
    }
    for name in ["none", "none-cycle", "cpu", "cpu-cycle"] {
        let rows =
            recorded(&folder.join(format!("interference-1000us-{name}.mcap"))).expect("raw data").len();
        assert!(rows >= 2000, "{name}: {rows}");
    }
    // The same from the recording alone.
    let recording = folder.join("interference-1000us-none.mcap");
    let mut again = measure();
    again.args(["interference", "--json", "--recording"]).arg(&recording);
    again.arg("--out").arg(folder.join("again"));
    let again = finished(again).json();
    let judged = &again["values"]["cells"][0];
    assert!(judged["cycles"].as_u64().expect("cycles") >= 2000, "the stop is recorded, too: {judged}");
    assert_eq!(judged["period_ns"], 1_000_000);
    // And the edges from the cycle's recording alone.
    let mut alone = measure();
    alone
        .args(["interference", "--json", "--recording"])
        .arg(folder.join("interference-1000us-none-cycle.mcap"));
    alone.arg("--out").arg(folder.join("edges"));
    assert_eq!(finished(alone).json()["values"]["edges"], cells[0]["edges"]);
}

// feature(measure): long runs in constant memory
#[test]
fn a_long_series_is_evaluated_as_it_arrives() {
    let _alone = alone();
    let folder = folder("interference-stream");
    let arguments =
        ["--duration", "1500ms", "--load", "k-lock", "--load-processes", "1", "--most-rows", "100"];
    let ran = finished(interference(&folder, &arguments));
    if refused(&ran) {
        return;
    }
    let report = ran.json();
    let cell = &report["values"]["cells"][0];
    assert_eq!((&cell["cycles"], &cell["load"]), (&1500.into(), &"k-lock".into()));
    assert!(!folder.join("interference-1000us-k-lock.mcap").exists(), "rows are not kept");
    let histogram = recorded(&folder.join("interference-1000us-k-lock-histogram.mcap"));
    let histogram = histogram.expect("the histogram of the periods");
    assert_eq!(cell["measured_period"]["count"], histogram.column("count").expect("counts").sum::<i64>());
}

/// A recording, also one that is being written.
fn recorded(path: &Path) -> Option<record::Recording> {
    record::Recording::read(&fs::read(path).ok()?[..]).ok()
}

/// An experiment that runs for minutes, with its observer at work; `None` if the machine cannot
/// make a cable.
fn going_on(folder: &Path) -> Option<(Child, Vec<i32>)> {
    let mut command =
        interference(folder, &["--samples", "1000000", "--load", "cpu", "--load-processes", "1"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
    let begin = Instant::now();
    loop {
        let recorded = recorded(&folder.join("interference-1000us-cpu.mcap"));
        let children = children(child.id());
        if recorded.is_some_and(|it| it.len() > 200) && children.len() == 3 {
            return Some((child, children));
        }
        if child.try_wait().expect("status").is_some() {
            let ran = ended(child);
            assert!(refused(&ran), "{}", ran.stderr);
            return None;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no cycles within a minute");
        thread::sleep(Duration::from_millis(20));
    }
}

fn ended(child: Child) -> Ran {
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Running child processes of a process.
fn children(process: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

fn words(process: i32) -> String {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn send(process: i32, signal: Signal) {
    kill_process(Pid::from_raw(process).expect("a process"), signal).expect("a signal");
}

/// All of them end within a minute.
fn all_gone(processes: &[i32]) {
    let begin = Instant::now();
    let alive = |process: &i32| words(*process).contains("onbeat");
    while processes.iter().any(alive) {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{:?}",
            processes.iter().map(|it| words(*it)).collect::<Vec<_>>()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_observer_that_dies_ends_the_experiment_with_its_name() {
    let _alone = alone();
    let Some((child, children)) = going_on(&folder("interference-killed")) else { return };
    let observer = children.iter().find(|it| words(**it).contains(" simulate ")).expect("the observer");
    send(*observer, Signal::KILL);
    let ran = ended(child);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    let last = ran.stderr.lines().last().unwrap_or_default();
    assert!(last.starts_with("onbeat: `onbeat simulate ") && last.contains("SIGKILL"), "{}", ran.stderr);
    all_gone(&children);
}

// feature(measure): an experiment that is stopped or killed leaves nothing behind
#[test]
fn ctrl_c_reports_what_there_is_and_leaves_nothing_behind() {
    let _alone = alone();
    let Some((child, children)) = going_on(&folder("interference-stopped")) else { return };
    send(i32::try_from(child.id()).expect("a process number"), Signal::INT);
    let ran = ended(child);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let cell = &report["values"]["cells"][0];
    assert!(cell["cycles"].as_u64().is_some_and(|cycles| (100..1_000_000).contains(&cycles)), "{cell}");
    assert!(report["warnings"].to_string().contains("stopped before its end"), "{}", report["warnings"]);
    all_gone(&children);
}

// feature(measure): an experiment that is stopped or killed leaves nothing behind
#[test]
fn nothing_outlives_an_experiment_that_is_killed() {
    let _alone = alone();
    let Some((mut child, children)) = going_on(&folder("interference-crashed")) else { return };
    child.kill().expect("kill");
    child.wait().expect("the program ends");
    all_gone(&children);
}

#[test]
fn wrong_arguments_are_named() {
    for (arguments, expected) in [
        (
            &["--load", "coffee"][..],
            "found \"coffee\", expected none, memory-sweep, gpu-sweep, cpu, k-lock, irq, memory-10, ",
        ),
        (&["--iface", "lo"], "--observer-iface"),
        (&["--samples", "0"], "0 is not in 1.."),
    ] {
        let mut command = measure();
        command.args(["interference"]).args(arguments);
        let ran = finished(command);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let mut command = measure();
    command.args(["interference", "--recording", "Cargo.toml", "--out"]).arg(folder("judged"));
    let ran = finished(command);
    assert!(
        ran.sentence().contains("Cargo.toml: expected a recording, an MCAP file of `onbeat run --record`"),
        "{}",
        ran.stderr
    );
}
