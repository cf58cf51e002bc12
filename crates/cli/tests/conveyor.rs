//! A machine without axes, by the library: the example that the documentation shows.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use onbeat::{Controller, Run, SignalError, Signals};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/conveyor.rs"]
mod example;

fn run() -> Run {
    Run::of(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor.toml")).option(&["--no-seam"])
}

#[test]
fn a_machine_without_axes_runs_by_its_signals() {
    let example = include_str!("../examples/conveyor.rs");
    assert!(example.lines().count() <= 45);
    let finished = run().cycles(500).with(|_| example::Conveyor::default()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&finished.json).unwrap();
    let value = |name: &str| {
        let signals = json["signals"].as_array().unwrap();
        signals.iter().find(|it| it["name"] == name).unwrap()["value"].clone()
    };
    // The simulated inputs read the outputs: nothing lies on the belt, nobody asks for a stop.
    assert_eq!(
        (value("belt"), value("light green"), value("light red")),
        (false.into(), true.into(), false.into())
    );
    assert_eq!(value("inputs.0x6010:01"), true);
}

struct Misspelt;

impl Controller for Misspelt {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        signals.output::<bool>("light gren").map(drop)
    }
}

#[test]
fn a_misspelt_signal_ends_the_start_with_the_near_ones() {
    let error = run().cycles(10).with(|_| Misspelt).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "the controller cannot start: no output is called \"light gren\"; near it: \"light green\""
        ),
        "{error}"
    );
}
