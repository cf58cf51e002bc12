//! `onbeat run --explain`: late cycles and their culprits. What needs root is skipped without it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use diagnose::trace::tracefs::Tracefs;
use record::Recording;
use serde_json::Value;

use crate::common::{alone, file, finished, measure, onbeat, run_alone};

/// Later than this is late, ns: the command's default.
const LATE: u64 = 50_000;

const CULPRIT: &str = "sneaky-culprit";

/// A cycle as the recording has it.
struct LateCycle {
    cycle: u64,
    release: u64,
    start: u64,
}

// feature(explain): a known culprit is named for at least 95 % of the cycles it delayed, and not blamed for others
#[test]
fn a_known_culprit_is_named_for_the_cycles_it_delayed() {
    let _alone = alone();
    let cpu = last_cpu();
    let log = file("culprit.log", "");
    let recording = file("explain.recording", "");
    let Some(mut culprit) = start_culprit(&cpu, &log) else { return };
    let attempt = || {
        let mut command = onbeat();
        command.args(["run", "--cycles", "4000", "--period", "1ms", "--cpu", &cpu, "--priority", "80"]);
        command.args(["--explain", "--json", "--force", "--record", recording.to_str().expect("a path")]);
        finished(command)
    };
    // A host stall longer than the drives' watchdogs says nothing about blame.
    let calm = || testkit::await_calm(Duration::from_secs(60));
    let ran = (0..5).map(|_| (calm(), attempt()).1).find(|ran| ran.code == Some(0));
    terminate(&mut culprit);
    let end = ran.expect("a run that keeps its bus").json();
    if end["explain"]["source"] != "trace" || end["conditions"]["priority"]["granted"] != 80 {
        eprintln!(
            "skipped: needs the kernel's trace and SCHED_FIFO 80: {}{}",
            end["explain"], end["conditions"]
        );
        return;
    }
    let intervals = intervals(&log);
    let cycles = cycles(&recording);
    assert_eq!(cycles.len(), 4000);
    let late: HashMap<u64, &Value> = end["late"]
        .as_array()
        .expect("late")
        .iter()
        .map(|it| (it["cycle"].as_u64().expect("cycle"), it))
        .collect();

    let taken = |cycle: &LateCycle| overlap(&intervals, cycle.release, cycle.start);
    let delayed: Vec<&LateCycle> = cycles.iter().filter(|cycle| taken(cycle) > LATE).collect();
    let named =
        delayed.iter().filter(|cycle| late.get(&cycle.cycle).is_some_and(|late| share(late) > 0)).count();
    assert!(
        delayed.len() >= 40,
        "the culprit delayed {} cycles only: {} times it ran",
        delayed.len(),
        intervals.len()
    );
    assert!(named * 100 >= delayed.len() * 95, "named for {named} of {} cycles", delayed.len());

    // Nor is it blamed for what it did not do. Around what it wrote down lie its own system calls.
    let accused: Vec<&LateCycle> =
        cycles.iter().filter(|cycle| late.get(&cycle.cycle).is_some_and(|late| share(late) > 0)).collect();
    let just = accused.iter().filter(|cycle| share(late[&cycle.cycle]) <= taken(cycle) + LATE).count();
    assert!(just * 100 >= accused.len() * 95, "{just} of {} accusations are just", accused.len());
    eprintln!(
        "named for {named} of {} delayed cycles; {just} of {} accusations just",
        delayed.len(),
        accused.len()
    );
    shares_add_up(&end);
}

// feature(explain): `late` in JSON, shares that add up
#[test]
fn late_is_an_array_when_explanations_are_requested() {
    let end = run_alone(&["run", "--cycles", "200", "--explain", "--late-above", "60min", "--json"]).json();
    assert_eq!(end["late"], Value::Array(Vec::new()));
    assert_eq!(end["explain"]["late_cycles"], 0);
    let end = run_alone(&["run", "--cycles", "100", "--json"]).json();
    assert!(end.get("late").is_none() && end.get("explain").is_none());
    let end = run_alone(&["run", "--cycles", "200", "--explain", "--late-above", "1ns", "--json"]).json();
    assert_eq!(end["late"].as_array().expect("late").len(), 200, "every cycle is a nanosecond late");
    shares_add_up(&end);
}

// feature(explain): the worst ten in words, exports for Perfetto (their shape)
#[test]
fn worst_cycles_are_explained_and_written_for_perfetto() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("explained");
    let _ = fs::remove_dir_all(&folder);
    let folder_name = folder.to_str().expect("a path");
    let ran = run_alone(&[
        "run",
        "--cycles",
        "300",
        "--explain",
        "--late-above",
        "1ns",
        "--explain-out",
        folder_name,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("300 cycles were later than 0.0 us; the worst:"), "{}", ran.stdout);
    assert!(ran.stdout.contains("lateness by cause"), "{}", ran.stdout);
    let told = |line: &&str| line.starts_with("cycle ") && line.contains(" late");
    assert!(ran.stderr.lines().any(|line| told(&line)), "as it happens, too: {}", ran.stderr);
    let files: Vec<_> =
        fs::read_dir(&folder).expect("the folder").map(|it| it.expect("a file").path()).collect();
    assert_eq!(files.len(), 10, "the worst ten");
    for path in files {
        let trace: Value = serde_json::from_str(&fs::read_to_string(&path).expect("a file")).expect("JSON");
        is_a_chrome_trace(&trace);
    }
    assert!(
        run_alone(&["run", "--cycles", "10", "--explain-out", folder_name]).code != Some(0),
        "alone it means nothing"
    );
}

// feature(explain): tracefs left as found, also after a kill
#[test]
fn the_trace_instance_of_a_killed_run_is_removed() {
    let _alone = alone();
    let instances = || -> Vec<String> {
        let tracefs = Tracefs::open().ok();
        let all = tracefs.map(|tracefs| tracefs.instances()).unwrap_or_default();
        all.into_iter().filter(|name| name.starts_with("onbeat-")).collect()
    };
    let mut child = onbeat();
    child.args(["run", "--explain"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = child.spawn().expect("the program");
    let prefix = format!("onbeat-{}-", child.id());
    let there = || instances().iter().any(|name| name.starts_with(&prefix));
    let made = (0..500).any(|_| {
        thread::sleep(Duration::from_millis(10));
        there()
    });
    child.kill().expect("kill");
    child.wait().expect("its end");
    if !made {
        testkit::skip!("no trace instance can be made here");
        return;
    }
    if !there() {
        testkit::skip!("another process has removed the instance of the killed run");
        return;
    }
    let mut next = onbeat();
    next.args(["run", "--cycles", "20", "--explain", "--json"]);
    assert_eq!(finished(next).json()["explain"]["source"], "trace");
    assert!(!there());
}

/// Starts the culprit; `None`, with the reason on stderr, where it may not take a CPU.
fn start_culprit(cpu: &str, log: &Path) -> Option<Child> {
    let mut command = measure();
    command.args(["culprit", "--name", CULPRIT, "--cpu", cpu, "--priority", "99", "--busy", "400us"]);
    command.args(["--every", "7ms", "--for", "50s", "--log", log.to_str().expect("a path")]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn().expect("the program");
    thread::sleep(Duration::from_millis(200));
    if child.try_wait().expect("status").is_some() {
        testkit::skip!("the culprit may not take the CPU");
        return None;
    }
    Some(child)
}

fn terminate(child: &mut Child) {
    let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill");
    assert!(asked.success() && child.wait().expect("its end").success());
}

fn last_cpu() -> String {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    (cpus - 1).to_string()
}

/// When the culprit had the CPU, as it wrote down itself.
fn intervals(log: &Path) -> Vec<(u64, u64)> {
    let text = fs::read_to_string(log).expect("the culprit's log");
    let intervals = text.lines().map(|line| {
        let (began, ended) = line.split_once(' ').expect("two times");
        (began.parse().expect("ns"), ended.parse().expect("ns"))
    });
    intervals.collect()
}

fn cycles(recording: &Path) -> Vec<LateCycle> {
    let recording =
        Recording::read(BufReader::new(File::open(recording).expect("the recording"))).expect("cycles");
    let column = |name| recording.column(name).expect("a column").map(|value| value as u64);
    let times = column("release_ns").zip(column("start_ns"));
    column("cycle")
        .zip(times)
        .map(|(cycle, (release, start))| LateCycle { cycle, release, start })
        .collect()
}

/// Part of a stretch of time that lies in any of the intervals.
fn overlap(intervals: &[(u64, u64)], from: u64, to: u64) -> u64 {
    intervals.iter().map(|&(began, ended)| ended.min(to).saturating_sub(began.max(from))).sum()
}

/// Part of a late cycle that is blamed on the culprit, ns.
fn share(late: &Value) -> u64 {
    let causes = late["causes"].as_array().expect("causes");
    let culprit = causes.iter().find(|cause| cause["kind"] == "task" && cause["name"] == CULPRIT);
    culprit.map_or(0, |cause| cause["ns"].as_u64().expect("ns"))
}

fn shares_add_up(end: &Value) {
    const KINDS: [&str; 7] = ["task", "irq", "softirq", "timer", "steal", "own", "unknown"];
    for late in end["late"].as_array().expect("late") {
        let causes = late["causes"].as_array().expect("causes");
        let sum: u64 = causes.iter().map(|cause| cause["ns"].as_u64().expect("ns")).sum();
        assert_eq!(Some(sum), late["late_ns"].as_u64(), "{late}");
        assert!(
            causes.iter().all(|cause| KINDS.contains(&cause["kind"].as_str().expect("kind"))),
            "{late}"
        );
    }
}

/// Chrome's Trace Event Format: every event has a phase, a process and a thread; slices have a
/// begin and a length and on one track do not overlap; tracks are named.
fn is_a_chrome_trace(trace: &Value) {
    let events = trace["traceEvents"].as_array().expect("traceEvents");
    let mut tracks: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for event in events {
        let track = event["tid"].as_u64().expect("tid");
        assert!(event["pid"].is_u64() && event["name"].is_string(), "{event}");
        match event["ph"].as_str() {
            Some("M") => {
                drop(names.insert(track, event["args"]["name"].as_str().expect("a name").to_owned()))
            }
            Some("i") => assert!(event["ts"].is_number() && event["s"].is_string(), "{event}"),
            Some("X") => {
                let (begin, length) =
                    (event["ts"].as_f64().expect("ts"), event["dur"].as_f64().expect("dur"));
                assert!(length >= 0.0, "{event}");
                tracks.entry(track).or_default().push((begin, begin + length));
            }
            _ => panic!("{event}"),
        }
    }
    assert!(tracks.keys().all(|track| names.contains_key(track)), "every track has a name");
    for slices in tracks.values_mut() {
        slices.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Times are rounded to a nanosecond on the way.
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 0.01), "slices of one track overlap");
    }
    assert!(trace["otherData"]["late"]["causes"].is_array());
}
