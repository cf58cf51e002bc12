//! Bus time: examples in the process next to a stall or load, and two runs that are the same.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testkit::Side;

use crate::common::{Ran, Running, await_cycles, finished, folder, number, onbeat, run, shared};
use crate::wire::Wire;

/// Stalls of a computer: on a wire, a drive has expired its watchdog of 100 ms by the end of most
/// of them.
const STALLS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// Paths of all examples.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let files = std::fs::read_dir(folder).expect("the examples").flatten().map(|it| it.path());
    let mut robots: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "toml")).collect();
    robots.sort();
    assert!(robots.len() > 10, "{robots:?}");
    robots
}

fn start(robot: &Path, arguments: &[&str]) -> Running {
    let mut command = onbeat();
    command.args(["run", robot.to_str().expect("UTF-8"), "--json", "--no-ipc"]).args(arguments);
    Running::start(command)
}

fn signal(running: &Running, signal: Signal) {
    let process = i32::try_from(running.id()).ok().and_then(Pid::from_raw).expect("its number");
    kill_process(process, signal).expect("a signal");
}

/// A run of an example in Op or on its way there, with so many cycles.
fn begun(robot: &Path, arguments: &[&str], cycles: u64) -> Running {
    let running = start(robot, arguments);
    await_cycles(running.id(), cycles);
    running
}

/// Loads of this computer, which end with the test.
fn load(count: usize) -> Vec<Running> {
    let spin = |_| {
        let mut command = Command::new("sh");
        testkit::end_with_parent(&mut command);
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Running::start(command)
    };
    (0..count).map(spin).collect()
}

/// All examples run at the same time, through load and stalls, for this time of their buses.
fn through_stalls(time: &str, timeout: Duration, settle: Duration) {
    let _apart = apart();
    let _shared = shared();
    let load = load(4);
    std::thread::scope(|scope| {
        for robot in examples() {
            scope.spawn(move || {
                let running = begun(&robot, &["--for", time], 10);
                for stall in STALLS {
                    std::thread::sleep(settle);
                    signal(&running, Signal::STOP);
                    std::thread::sleep(stall);
                    signal(&running, Signal::CONT);
                }
                ran_well(&robot, &running.finish_within(timeout));
            });
        }
    });
    drop(load);
}

/// Keeps the load of one test away from the simulators of another one: without the processor for
/// half a second, they are a lost bus.
fn apart() -> MutexGuard<'static, ()> {
    static LOAD: Mutex<()> = Mutex::new(());
    LOAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Exit code 0, no frame lost, no axis stopped, and a last line that hides no stall.
fn ran_well(robot: &Path, ran: &Ran) {
    let what = format!("{}: {}{}", robot.display(), ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0), "{what}");
    let end: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((number(&end, "lost_frames"), number(&end, "working_counter_errors")), (0, 0), "{what}");
    assert!(end["axes"].as_array().expect("axes").iter().all(|axis| axis["stop"].is_null()), "{what}");
    assert!(!ran.stderr.contains("held"), "{what}");
    let stalls = &end["host_stalls"];
    let longest = STALLS.into_iter().max().expect("stalls").as_nanos() as u64;
    assert!(number(stalls, "longest_ns") >= longest * 9 / 10, "{what}");
    assert!(number(stalls, "count") >= 3 && number(stalls, "beyond_watchdog") >= 3, "{what}");
    let last = ran.stderr.lines().last().expect("a last line");
    let says = "; on a wire, a drive with a watchdog of 100 ms would have stopped ";
    assert!(last.contains(" host stall") && last.contains(says), "{last}");
}

// feature(simulator): bus time: stalls and load of the computer stop no axis and lose no frame of a bus in the process
#[test]
fn examples_ride_out_stalls_and_load() {
    through_stalls("8s", Duration::from_secs(240), Duration::from_millis(150));
}

#[test]
#[ignore = "takes minutes: a part of `cargo xtask proofs`"]
fn examples_ride_out_stalls_and_load_for_a_minute() {
    through_stalls("60s", Duration::from_secs(1200), Duration::from_secs(2));
}

/// Stalls in the computer's time: the longer ones let the watchdogs of the drives expire.
const HOST_STALLS: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(150),
    Duration::from_millis(500),
    Duration::from_secs(5),
];

/// Stalls a run that is in Op: the exit code says so, and the last line names the cause.
fn ends_with_the_cause(running: Running, stall: Duration) {
    await_cycles(running.id(), 500);
    signal(&running, Signal::STOP);
    std::thread::sleep(stall);
    signal(&running, Signal::CONT);
    let ran = running.finish();
    // First the last lines: the summary of a long test run keeps only the beginning.
    let events: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" cycle ")).collect();
    let what = format!("{stall:?}: {} | {}{}", events.join(" | "), ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(3), "{what}");
    assert!(!ran.stdout.contains("host_stalls"), "{what}");
    let last = ran.stderr.lines().last().unwrap_or_default();
    // On a busy computer, a late reply may have stopped the axis before.
    let late = last.contains("no process data of the axis (outage)");
    assert!(last.contains("this computer stalled for ") || late, "{what}");
    let watched = stall >= Duration::from_millis(500);
    assert!(!watched || last.contains("0x7500"), "{what}");
}

/// In the host's time, the same stall is an outage.
#[test]
fn a_stall_in_host_time_is_an_outage() {
    let _apart = apart();
    let _shared = shared();
    let robot = examples().into_iter().find(|it| it.ends_with("first-drive.toml")).expect("the example");
    for stall in HOST_STALLS {
        ends_with_the_cause(start(&robot, &["--cycles", "2500", "--time", "host"]), stall);
    }
}

// feature(axes): after a stall of the computer on a wire, exit code and last line name it
#[test]
fn a_stall_on_a_wire_is_named_at_the_end() {
    const ROBOT: &str = "examples/first-drive.toml";
    let _apart = apart();
    for stall in HOST_STALLS {
        let Some(wire) = Wire::with(ROBOT) else { return };
        let mut command = onbeat();
        command.args(["run", ROBOT, "--cycles", "2500", "--json", "--no-ipc"]);
        command.args(["--iface", Side::Near.interface()]);
        ends_with_the_cause(Running::start(wire.testbed.run_in(Side::Near, command)), stall);
    }
}

/// Rows of a recording as CSV.
fn rows(recording: &Path) -> String {
    let csv = recording.with_extension("csv");
    let mut command = onbeat();
    command.arg("export").arg(recording).arg(&csv);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::fs::read_to_string(&csv).expect("the rows")
}

// feature(simulator): `--time fast`: two runs with one seed have the same recording
#[test]
fn fast_runs_with_one_seed_record_the_same() {
    let folder = folder("bus-time-fast");
    let faults = ["--loss", "1%", "--late", "1%", "--reorder", "1%", "--duplicate", "1%"];
    let record = |name: &str, seed: &str| {
        let path = folder.join(name);
        let arguments = ["run", "--time", "fast", "--for", "3s", "--json", "--seed", seed, "--record"];
        let all = [&arguments[..], &[path.to_str().expect("UTF-8")], &faults].concat();
        let end = run(&all).json();
        assert_eq!((number(&end, "cycles"), number(&end, "dropped_records")), (3_000, 0), "{end}");
        assert!(number(&end, "lost_frames") > 0, "{end}");
        rows(&path)
    };
    let first = record("first.mcap", "7");
    assert!(first.lines().count() > 3_000, "{first}");
    assert!(first == record("second.mcap", "7"), "two runs with one seed differ");
    assert!(first != record("third.mcap", "8"), "two seeds make one run");
}

#[test]
fn a_fast_run_takes_no_clients() {
    let ran = run(&["run", "--time", "fast", "--cycles", "10", "--ipc", "nobody"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("--time fast with --ipc"), "{}", ran.stderr);
    let ran = run(&["run", "--time", "fast", "--cycles", "10", "--control", "fast"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("--time fast with --control"), "{}", ran.stderr);
}

/// At a real-time priority, a cycle that never sleeps would hold its CPU.
#[test]
fn a_fast_run_has_no_real_time_priority() {
    let end = run(&["run", "--time", "fast", "--cycles", "1000", "--json"]).json();
    let conditions = &end["conditions"];
    assert_eq!(conditions["profile"]["granted"], "none", "{conditions}");
    assert!(conditions["priority"]["granted"].is_null(), "{conditions}");
}

/// Repeated pairs of events have the time of the bus, and short outages are no loss.
#[test]
fn a_fast_run_reports_times_of_the_bus() {
    let _shared = shared();
    let loss = ["--loss", "20%", "--late", "30%", "--seed", "3"];
    let ran = run(&[&["run", "--time", "fast", "--for", "20s", "--no-ipc"][..], &loss].concat());
    let within = ran.stderr.lines().filter_map(|line| line.split_once(" times in ")).map(|(_, it)| it);
    let within: Vec<f64> = within.filter_map(|it| it.split_once(" s,")?.0.parse().ok()).collect();
    assert!(!within.is_empty() && within.iter().all(|it| *it <= 30.0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("check power and cables"), "{}", ran.stderr);
}

/// The time of day of an event is the time of the start plus bus time.
#[test]
fn a_fast_run_counts_times_of_day_in_bus_time() {
    let _shared = shared();
    let file = folder("bus-time-events").join("events.jsonl");
    let events = ["--events", file.to_str().unwrap(), "--no-ipc"];
    let loss = ["--loss", "20%", "--seed", "3"];
    run(&[&["run", "--time", "fast", "--for", "20s"][..], &events, &loss].concat());
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let time = |line: &Value| humantime::parse_rfc3339(line["time"].as_str().unwrap()).unwrap();
    let bus = |line: &Value| line["at_ns"].as_i64().unwrap() as f64 / 1e9;
    let (begin, end) = (time(&lines[0]), time(lines.last().unwrap()));
    for line in &lines {
        let ago = time(line).duration_since(begin).unwrap().as_secs_f64();
        assert!((ago - (bus(line) - bus(&lines[0]))).abs() < 2e-3, "{line}");
    }
    assert!(lines.len() > 4 && end.duration_since(begin).unwrap().as_secs() >= 20, "{text}");
}
