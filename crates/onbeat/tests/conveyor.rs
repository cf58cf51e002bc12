//! A machine without axes: the example that the documentation shows.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use onbeat::{Controller, Error, Robot, SignalError, Signals, Value};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/conveyor.rs"]
mod example;

fn robot() -> Robot {
    Robot::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor.toml")).unwrap().without_ipc()
}

// feature(signals): a machine without axes, by its controller
// feature(library): a machine by its signals alone
#[test]
fn a_machine_without_axes_runs_by_its_signals() {
    let example = include_str!("../examples/conveyor.rs");
    assert!(example.lines().count() < 40);
    let summary = robot().cycles(500).run(example::Conveyor::default()).unwrap();
    let value = |name: &str| summary.signal(name).unwrap().value;
    // The simulated inputs read the outputs: nothing lies on the belt, no stop is requested.
    assert_eq!(
        [value("belt"), value("light green"), value("light red"), value("inputs.0x6010:01")],
        [Value::Bool(false), Value::Bool(true), Value::Bool(false), Value::Bool(true)]
    );
    assert!(summary.signal("no such signal").is_none());
}

/// The example as a program.
fn program() -> Command {
    let tests = std::env::current_exe().unwrap();
    let built = tests.ancestors().nth(2).unwrap();
    // `cargo xtask test` has built it with all others, and with their features.
    if std::env::var_os("ONBEAT_BUILT").is_none() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--offline", "--package", "onbeat", "--example", "conveyor"]);
        build.args(built.ends_with("release").then_some("--release"));
        assert!(build.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    }
    let mut program = Command::new(built.join("examples/conveyor"));
    program.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).stdout(Stdio::piped());
    program
}

/// Number of sleeps of its thread "cycle": one a cycle.
fn cycles(process: u32) -> Option<u64> {
    std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten().find_map(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        value("voluntary_ctxt_switches:").filter(|_| value("Name:") == Some("cycle"))?.parse().ok()
    })
}

/// Waits until it has run 200 cycles.
fn await_cycles(running: &mut Child) {
    let begin = Instant::now();
    while cycles(running.id()).is_none_or(|cycles| cycles < 200) {
        let ended = running.try_wait().unwrap();
        assert!(ended.is_none() && begin.elapsed() < Duration::from_secs(60), "{ended:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

// feature(library): the examples go on where their input is at its end, and stop in order at Enter
#[test]
fn program_runs_without_input_and_stops_at_enter() {
    let mut running = program().stdin(Stdio::null()).spawn().unwrap();
    await_cycles(&mut running);
    running.kill().unwrap();
    running.wait().unwrap();

    let mut running = program().stdin(Stdio::piped()).spawn().unwrap();
    await_cycles(&mut running);
    running.stdin.take().unwrap().write_all(b"\n").unwrap();
    let ended = running.wait_with_output().unwrap();
    assert!(ended.status.success() && !ended.stdout.is_empty(), "{ended:?}");
}

struct Misspelt;

impl Controller for Misspelt {
    fn init(&mut self, names: &Signals) -> Result<(), SignalError> {
        names.output::<bool>("light gren").map(drop)
    }
}

// feature(signals): a machine without axes, by its controller
// feature(library): errors to match on: interface, robot file, signal, bring-up, recording, panic
#[test]
fn a_misspelt_signal_ends_the_start_with_the_near_ones() {
    let error = robot().cycles(10).run(Misspelt).unwrap_err();
    let Error::Signal(SignalError::Unknown { name, near, .. }) = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), near.names[0].as_str()), ("light gren", "light green"));
    assert!(
        error.to_string().starts_with(
            "the controller cannot start: no output is called \"light gren\"; near it: \"light green\""
        ),
        "{error}"
    );
}
