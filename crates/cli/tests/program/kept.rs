//! History and positions that `onbeat run --state` keeps over restarts, also after SIGKILL.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

use onbeat::ipc::state::StopReason;

use crate::common::{Ran, Running, file, finished, folder, onbeat, shared};
use crate::robots::Robot;
use crate::wire::Wire;

/// One drive with limits, an absolute encoder, and a position memory; it is enabled and holds.
fn with_memory(name: &str) -> String {
    let drive = include_str!("../../../../examples/first-drive.toml");
    let limits = "limits = { velocity = 6.0,";
    let memory = "encoder = \"multi_turn\"\nencoder_range = 4096\nhoming = { offset = 0.0 }\nposition_memory = true\n\
                  limits = { position = [-3.0, 3.0], velocity = 6.0,";
    assert!(drive.contains(limits));
    let drive =
        drive.replace(limits, memory).replace("name = \"first-drive\"", &format!("name = \"{name}\""));
    drive.replace("profile = \"PM\"", "outage_time = \"10s\"")
}

fn memory_file(state: &Path, robot: &str) -> std::path::PathBuf {
    state.join("simulated").join(robot).join("position-shaft.json")
}

/// The memory as JSON; a torn file is a failure.
fn memory(state: &Path, robot: &str) -> serde_json::Value {
    let text = fs::read_to_string(memory_file(state, robot)).expect("a memory");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

/// Like an operator after measuring the position: here the simulated drive begins at 0.
fn accept(state: &Path, robot: &str) {
    let mut memory = memory(state, robot);
    memory["at_rest"] = 0.into();
    fs::write(memory_file(state, robot), memory.to_string()).expect("written");
}

fn run(path: &Path, state: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = onbeat();
    command.arg("run").arg(path).arg("--state").arg(state).arg("--no-ipc").args(arguments);
    command
}

fn kept(state: &Path, robot: &str, arguments: &[&str]) -> Ran {
    let mut command = onbeat();
    command.args(["events", "--kept", robot, "--simulated", "--state"]).arg(state).args(arguments);
    finished(command)
}

// feature(program): `onbeat events` names the kept events where no cycle runs
#[test]
fn events_without_a_cycle_name_the_kept_ones() {
    let mut command = onbeat();
    command.args(["events", "--cycle", "/nowhere/at-all.sock"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("`onbeat events --kept ROBOT`"), "{}", ran.stderr);
}

/// Kinds of the kept events.
fn kinds(state: &Path, robot: &str) -> Vec<String> {
    let ran = kept(state, robot, &["--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let kind = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
        event["event"].as_str().expect("a kind").to_owned()
    };
    ran.stdout.lines().map(kind).collect()
}

// feature(axes): a run that is killed at any time leaves no position memory of an enabled drive
#[test]
fn killed_runs_leave_a_memory_that_is_right() {
    let _shared = shared();
    let (name, state) = ("killed-memory", folder("killed-memory"));
    let path = file("killed-memory.toml", &with_memory(name));
    let first = finished(run(&path, &state, &["--cycles", "300"]));
    assert_eq!(first.code, Some(3), "no memory yet: {}", first.stderr);
    assert!(first.stderr.contains("its position memory is missing"), "{}", first.stderr);
    accept(&state, name);
    let random = RandomState::new();
    let mut in_use = 0;
    for number in 0..8_u64 {
        let mut running = Running::start(run(&path, &state, &["--cycles", "100000"]));
        // Every second one not before its drive may be enabled.
        let enabled = || !memory(&state, name)["at_rest"].is_number();
        while number % 2 == 0 && !enabled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(random.hash_one(number) % 1_000));
        running.kill();
        let left = memory(&state, name);
        let known = left["at_rest"].is_number();
        in_use += usize::from(!known);
        let next = finished(run(&path, &state, &["--cycles", "300"]));
        let expected = if known { Some(0) } else { Some(3) };
        assert_eq!(next.code, expected, "{number}: {left}: {}", next.stderr);
        if !known {
            let why = "when the last run ended or was killed, its drive was enabled";
            assert!(next.stderr.contains(why), "{}", next.stderr);
            accept(&state, name);
        }
    }
    assert!(in_use > 0, "none was killed while its drive was enabled");
    let not_ended = kinds(&state, name).iter().filter(|it| *it == "not_ended").count();
    assert!(not_ended >= in_use, "{not_ended} of {in_use}");
}

// feature(program): `run -q` names a state directory that cannot be used
#[test]
fn a_quiet_run_names_an_unusable_state_directory() {
    let _shared = shared();
    let directory = folder("quiet-state").join("in-the-way");
    fs::write(&directory, "").expect("written");
    let path = file("quiet-state.toml", &with_memory("quiet-state"));
    let ran = finished(run(&path, &directory, &["-q", "--cycles", "300"]));
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let place = directory.to_str().expect("UTF-8");
    assert!(ran.stderr.contains(place) && ran.stderr.contains("another --state"), "{}", ran.stderr);
}

// feature(program): `control enable` names a state directory that holds a drive back
#[test]
fn a_memory_that_cannot_be_written_is_named_by_enable() {
    let _shared = shared();
    let (name, state) = ("full-memory", folder("full-memory"));
    let path = file("full-memory.toml", &with_memory(name));
    assert_eq!(finished(run(&path, &state, &["--cycles", "300"])).code, Some(3), "no memory yet");
    accept(&state, name);
    let arguments = ["--state", state.to_str().expect("UTF-8")];
    let robot = Robot::attached("full-memory", path.to_str().expect("UTF-8"), &arguments);
    let ask = |request: &str| {
        let mut command = onbeat();
        command.args(["control", "--cycle"]).arg(robot.ipc.path()).arg(request);
        finished(command)
    };
    robot.until("enabled", |state| state.axes[0].drive_state == 5);
    assert_eq!(ask("disable").code, Some(0));
    robot.until("flag written", |_| memory(&state, name)["at_rest"].is_number());
    // No file takes the place of a folder with something in it.
    let there = memory_file(&state, name);
    fs::remove_file(&there).expect("a memory");
    fs::create_dir_all(there.join("in-the-way")).expect("a folder");
    let ran = ask("enable");
    let expected = "not enabled: shaft: its position memory cannot be written (";
    assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{}", ran.stderr);
    let remedy = "correct the state directory, which `onbeat run` names, then `onbeat control enable`";
    assert!(ran.stderr.contains(remedy), "{}", ran.stderr);
    // The request has lapsed: a disk that works again enables nothing.
    robot.until("request lapsed", |state| state.axes[0].stop == StopReason::AwaitsStart as u8);
    fs::remove_dir_all(&there).expect("a folder");
    robot.until("written again", |_| there.is_file());
    let before = robot.until("a state", |_| true).cycle;
    let later = robot.until("some cycles later", |state| state.cycle > before + 200);
    assert!(later.axes[0].drive_state < 4, "{later:?}");
    let ran = ask("enable");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    robot.end();
}

// feature(program): `events --kept` shows the first cause of a stop, and who reset, over restarts
#[test]
fn first_cause_and_user_of_a_reset_are_kept() {
    let _shared = shared();
    let (name, state) = ("kept-history", folder("kept-history"));
    let drive = include_str!("../../../../examples/first-drive.toml");
    let drive = drive.replace("name = \"first-drive\"", &format!("name = \"{name}\""));
    let path = file("kept-history.toml", &drive.replace("profile = \"PM\"", "outage_time = \"10s\""));
    let missing = kept(&state, name, &[]);
    assert!(missing.code == Some(1) && missing.sentence().contains("nothing is kept of robot"));
    let control = format!("kept-{}", std::process::id());
    let directory = state.to_str().expect("UTF-8");
    let arguments = ["--state", directory, "--control", &control];
    let robot = Robot::attached("kept", path.to_str().expect("UTF-8"), &arguments);
    robot.until("enabled", |state| state.axes[0].drive_state == 5);
    let fault = {
        let mut command = onbeat();
        command.args(["fault", "--of", &control, "drive", "fault", "drive", "0x2310"]);
        finished(command)
    };
    assert_eq!(fault.code, Some(0), "{}", fault.stderr);
    robot.until("fault", |state| state.axes[0].error_code == 0x2310);
    let mut reset = onbeat();
    reset.args(["control", "--cycle"]).arg(robot.ipc.path()).arg("reset");
    let reset = finished(reset);
    assert_eq!(reset.code, Some(0), "{}", reset.stderr);
    robot.until("enabled again", |state| state.axes[0].drive_state == 5);
    robot.end();
    let ran = kept(&state, name, &[]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let cause = lines.iter().find(|it| it.contains("axis \"shaft\" is held")).expect("a stop");
    assert!(cause.contains("the drive is in fault"), "{}", ran.stdout);
    let user = rustix::process::getuid().as_raw();
    let by = |it: &&&str| {
        it.contains("reset of faults requested by process") && it.contains(&format!("of user {user}"))
    };
    assert!(lines.iter().any(|it| by(&it)), "{}", ran.stdout);
    // The robot file is changed, and the next run is another one.
    fs::write(&path, fs::read_to_string(&path).expect("a file") + "# changed\n").expect("written");
    finished(run(&path, &state, &["--cycles", "50"]));
    let kinds = kinds(&state, name);
    assert_eq!(
        kinds,
        ["run_began", "stop", "request", "run_ended", "file_changed", "run_began", "run_ended"]
    );
}

// feature(axes): `reset_faults` resets the faults of a crash three times in ten minutes, and enables nothing on a wire
#[test]
fn faults_of_a_crash_are_reset_three_times_on_a_wire() {
    let _shared = shared();
    let text = include_str!("../../../../examples/six-axis.toml");
    let text = text.replace("period = \"1ms\"", "period = \"1ms\"\nreset_faults = \"communication\"");
    let text = text.replace("after_outage = \"resume\"", "");
    let (path, state) = (file("reset-faults.toml", &text), folder("reset-faults"));
    let [path, state] = [&path, &state].map(|it| it.to_str().expect("UTF-8"));
    let Some(wire) = Wire::with(path) else { return };
    let start = || wire.onbeat(&["run", path, "--state", state, "--cycles", "1500", "--no-ipc"]);
    let run = |code: &str| {
        assert_eq!(wire.onbeat(&["sdo", "write", "2", "0x2f00:2", code]).code, Some(0));
        start()
    };
    // Without a fault to reset, too.
    let ran = start();
    assert!(ran.stderr.contains("the axes wait for `onbeat control enable`"), "{}", ran.stderr);
    assert!(ran.code == Some(3) && !ran.stderr.contains("Operation enabled"), "{}", ran.stderr);
    let waits = "axis-3: communication faults from before the start are reset";
    for number in 0..3 {
        let ran = run("0x7500");
        assert!(ran.stderr.contains(waits), "{number}: {}", ran.stderr);
        // Neither the drive in fault nor another one was enabled by the controller that wants it.
        let held = "axis \"axis-3\" is held: power, STO or a permission was missing";
        assert!(ran.code == Some(3) && ran.stderr.contains(held), "{number}: {}", ran.stderr);
        let waiting = ran.stderr.lines().filter(|it| it.contains("the axis waits for a start request"));
        let stopped = waiting.filter(|it| it.starts_with("onbeat: supervision stopped axis")).count();
        assert!(stopped >= 3, "{number}: {}", ran.stderr);
        assert!(!ran.stderr.contains("Operation enabled"), "{number}: {}", ran.stderr);
    }
    let ran = run("0x7500");
    let more = "axis-3: faults are not reset at the start: 3 starts within ten minutes had a reset";
    assert!(ran.stderr.contains(more) && ran.stderr.contains("ended in Fault"), "{}", ran.stderr);
    fs::remove_dir_all(state).expect("removed");
    // The fault of before is still there, and another one is not reset.
    let reset = start();
    assert!(reset.stderr.contains(waits), "{}", reset.stderr);
    let ran = run("0x2310");
    assert!(
        ran.stderr.contains("is not reset at the start: it is no communication fault"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("ended in Fault"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("Operation enabled"), "no other axis is enabled: {}", ran.stderr);
}
