//! A machine without axes: the example that the documentation shows.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

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
    // The simulated inputs read the outputs: nothing lies on the belt, no stop is asked for.
    assert_eq!(
        [value("belt"), value("light green"), value("light red"), value("inputs.0x6010:01")],
        [Value::Bool(false), Value::Bool(true), Value::Bool(false), Value::Bool(true)]
    );
    assert!(summary.signal("no such signal").is_none());
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
    assert_eq!((name.as_str(), near[0].as_str()), ("light gren", "light green"));
    assert!(
        error.to_string().starts_with(
            "the controller cannot start: no output is called \"light gren\"; near it: \"light green\""
        ),
        "{error}"
    );
}
