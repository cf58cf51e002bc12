//! A machine without axes: the example that the documentation shows.
//!
//! A machine with one axis, by the library: a part is carried, the stop input brings the belt to
//! rest and disables it.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/conveyor.rs"]
mod example;

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use onbeat::motion::supervision::StopReason;
use onbeat::{
    AxisReport, Controller, CycleInfo, Error, Io, Output, Robot, SignalError, Signals, Summary, Value,
};

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

// feature(library): the examples continue at the end of their input, and stop in order at Enter
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

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/conveyor_axis.rs"]
mod axis_example;

/// Presses buttons and puts parts on the belt: the simulated inputs read the free outputs.
struct Operator {
    conveyor: axis_example::Conveyor,
    /// Part at start, part at end, stop, reset.
    buttons: Option<[Output<bool>; 4]>,
    cycles: u64,
    seen: Sender<(u64, AxisReport)>,
}

/// Cycles in which each button is pressed, once the belt is enabled.
const PRESSED: [std::ops::Range<u64>; 4] = [20..30, 3_000..3_001, 200..400, 450..470];

impl Controller for Operator {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        let free =
            |channel: u16| signals.output(&format!("outputs.0x{:x}:01", 0x7000 + 0x10 * (channel - 1)));
        self.buttons = Some([free(5)?, free(6)?, free(7)?, free(8)?]);
        self.conveyor.init(signals)
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let report = *io.axis(0).unwrap();
        self.cycles += u64::from(report.was_enabled);
        io.set_all(self.buttons.unwrap(), PRESSED.map(|pressed| pressed.contains(&self.cycles)));
        self.seen.send((self.cycles, report)).unwrap();
        self.conveyor.update(info, io);
    }
}

/// Cycles from the stop to the reset, and some more.
const STOPPED: std::ops::Range<u64> = 200..500;

/// A run that the machine did not disturb: what each cycle showed, and its summary.
fn undisturbed() -> (Vec<(u64, AxisReport)>, Summary) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor-axis.toml");
    for _ in 0..5 {
        let (seen, told) = channel();
        let robot = Robot::load_with_period(file, Duration::from_millis(10)).unwrap();
        let conveyor = axis_example::Conveyor::default();
        let operator = Operator { conveyor, buttons: None, cycles: 0, seen };
        let ended = robot.without_ipc().cycles(650).run(operator);
        let all: Vec<(u64, AxisReport)> = told.try_iter().collect();
        // An input that is lost for some cycles stops the belt, too.
        let lost = |(cycle, report): &(u64, AxisReport)| match report.stop {
            None => false,
            Some(StopReason::Interlock) => report.was_enabled && !STOPPED.contains(cycle),
            Some(_) => report.was_enabled,
        };
        match ended {
            Ok(summary) if !all.iter().any(lost) => return (all, summary),
            Ok(_) => eprintln!("the machine stood still: once more"),
            Err(error) => eprintln!("{error}: once more"),
        }
    }
    panic!("the machine stands still all the time");
}

// feature(signals): a machine with one axis: its stop input stops the belt, then disables it
#[test]
fn stop_input_stops_and_disables_the_belt_until_a_reset() {
    let (all, summary) = undisturbed();
    let at = |cycle: u64| all.iter().find(|it| it.0 == cycle).unwrap().1;
    let velocity = |cycle: u64| at(cycle).feedback.velocity.0;
    // It carries the part, within its limits.
    assert!(velocity(15).abs() < 0.1, "{}", velocity(15));
    assert!((velocity(190) - 10.0).abs() < 0.5, "{}", velocity(190));
    assert!(all.iter().all(|it| it.1.feedback.velocity.0.abs() <= 12.0));
    // Stopped: it slows down over many cycles with its torque on, stops, and is disabled.
    let braking = all.iter().filter(|it| (200..400).contains(&it.0) && it.1.feedback.velocity.0 > 0.5);
    let braking: Vec<_> = braking.collect();
    assert!(braking.len() > 20 && braking.iter().all(|it| enabled(&it.1)), "{} cycles", braking.len());
    assert!(velocity(390).abs() < 0.1 && !enabled(&at(390)));
    assert_eq!(at(390).stop, Some(StopReason::Interlock));
    // It stays so after the button is released, until the reset; it does not start by itself.
    assert!(!enabled(&at(440)) && enabled(&at(600)), "{:?}", at(600));
    assert!(velocity(600).abs() < 0.1);
    let value = |name: &str| summary.signal(name).unwrap().value;
    assert_eq!((value("light green"), value("light red")), (Value::Bool(true), Value::Bool(false)));
}

fn enabled(report: &AxisReport) -> bool {
    report.state.is_some_and(|state| state.to_string() == "Operation enabled")
}
