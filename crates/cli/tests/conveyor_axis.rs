//! A machine with one axis, by the library: a part is carried, the stop input brings the belt to rest and disables it.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::mpsc::{Sender, channel};

use onbeat::motion::supervision::StopReason;
use onbeat::{AxisReport, Beat, Controller, Io, Output, Run, SignalError, Signals};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/conveyor_axis.rs"]
mod example;

/// Presses buttons and puts parts on the belt: the simulated inputs read the free outputs.
struct Operator {
    conveyor: example::Conveyor,
    /// Part at start, part at end, stop, reset.
    buttons: Option<[Output<bool>; 4]>,
    cycles: u64,
    seen: Sender<(u64, AxisReport)>,
}

/// Cycles in which each button is pressed, once the belt is enabled.
const PRESSED: [std::ops::Range<u64>; 4] = [50..100, 3_000..3_001, 600..1_200, 1_300..1_350];

impl Controller for Operator {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        let free =
            |channel: u16| signals.output(&format!("outputs.0x{:x}:01", 0x7000 + 0x10 * (channel - 1)));
        self.buttons = Some([free(5)?, free(6)?, free(7)?, free(8)?]);
        self.conveyor.init(signals)
    }

    fn exchange(&mut self, beat: Beat, io: &mut Io<'_>) {
        let report = *io.axis(0).unwrap();
        self.cycles += u64::from(report.was_enabled);
        io.set_all(self.buttons.unwrap(), PRESSED.map(|pressed| pressed.contains(&self.cycles)));
        self.seen.send((self.cycles, report)).unwrap();
        self.conveyor.exchange(beat, io);
    }
}

#[test]
fn the_stop_input_brings_the_belt_to_rest_then_disables_it_until_a_reset() {
    let (seen, told) = channel();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/conveyor-axis.toml");
    let run = Run::of(file).option(&["--no-seam"]).cycles(2_500);
    let operator = |_: &mut onbeat::Robot| Operator {
        conveyor: example::Conveyor::default(),
        buttons: None,
        cycles: 0,
        seen,
    };
    let finished = run.with(operator).unwrap();
    let all: Vec<(u64, AxisReport)> = told.try_iter().collect();
    let at = |cycle: u64| all.iter().find(|it| it.0 == cycle).unwrap().1;
    let velocity = |cycle: u64| at(cycle).feedback.velocity.0;
    // It carries the part, within its limits.
    assert!(velocity(40).abs() < 0.1, "{}", velocity(40));
    assert!((velocity(590) - 10.0).abs() < 0.5, "{}", velocity(590));
    assert!(all.iter().all(|it| it.1.feedback.velocity.0.abs() <= 12.0));
    // Stopped: it slows down over many cycles with its torque on, comes to rest, and is disabled.
    let braking = all.iter().filter(|it| (600..1_200).contains(&it.0) && it.1.feedback.velocity.0 > 0.5);
    let braking: Vec<_> = braking.collect();
    assert!(braking.len() > 50 && braking.iter().all(|it| enabled(&it.1)), "{} cycles", braking.len());
    assert!(velocity(1_190).abs() < 0.1 && !enabled(&at(1_190)));
    assert_eq!(at(1_190).stop, Some(StopReason::Interlock));
    // It stays so, though the button is let go, until the reset; it does not start by itself.
    assert!(!enabled(&at(1_290)) && enabled(&at(1_900)), "{:?}", at(1_900));
    assert!(velocity(1_900).abs() < 0.1);
    let json: serde_json::Value = serde_json::from_str(&finished.json).unwrap();
    let signals = json["signals"].as_array().unwrap();
    let value = |name: &str| signals.iter().find(|it| it["name"] == name).unwrap()["value"].clone();
    assert_eq!((value("light green"), value("light red")), (true.into(), false.into()));
}

fn enabled(report: &AxisReport) -> bool {
    report.state.is_some_and(|state| state.to_string() == "Operation enabled")
}
