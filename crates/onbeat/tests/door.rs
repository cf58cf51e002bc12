//! A controller of one's own with an axis and signals: the example that the documentation shows.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::mpsc::{Sender, channel};

use onbeat::{Controller, CycleInfo, Input, Io, Output, Robot, SignalError, Signals, Value};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/door.rs"]
mod example;

/// Opens and closes the door: its simulated switch shows the lamp's output.
struct Visitor {
    door: example::Door,
    signals: Option<(Input<bool>, Output<bool>)>,
    /// Cycles since the axis follows.
    cycles: u64,
    /// The door is closed, and the velocity asked for in rad a cycle.
    seen: Sender<(bool, bool, f64)>,
    last: f64,
}

/// Cycles in which the door is open.
const OPEN: std::ops::Range<u64> = 400..1_100;

impl Controller for Visitor {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.signals = Some((signals.input("door closed")?, signals.output("lamp green")?));
        self.door.init(signals)
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (switch, lamp) = self.signals.unwrap();
        self.door.update(info, io);
        let position = io.command(0).unwrap().setpoint.position.0;
        if io.axis(0).unwrap().was_enabled {
            self.cycles += info.periods;
            let seen = (io.get(switch), io.sent(lamp), position - self.last);
            self.seen.send(seen).unwrap();
        }
        self.last = position;
        io.set(lamp, !OPEN.contains(&self.cycles));
    }
}

// feature(library): a robot with a controller of one's own, or its file's controllers, wrapped
#[test]
fn the_spindle_turns_while_the_door_is_closed() {
    let example = include_str!("../examples/door.rs");
    assert!(example.lines().count() < 40);
    let (seen, told) = channel();
    let robot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/io-station.toml");
    let robot = Robot::load(robot).unwrap().without_ipc().cycles(2_500);
    let door = example::Door::default();
    let summary = robot.run(Visitor { door, signals: None, cycles: 0, seen, last: 0.0 }).unwrap();
    assert!(summary.axis("spindle").unwrap().was_enabled, "{summary:?}");
    let all: Vec<_> = told.try_iter().collect();
    assert!(all.iter().any(|&(closed, _, step)| closed && step > 5e-3), "it turns");
    assert!(all.iter().any(|&(closed, _, step)| !closed && step == 0.0), "it rests behind an open door");
    assert!(all.iter().all(|&(closed, lamp, _)| !lamp || closed), "no lamp without a closed door");
    assert_eq!(summary.signal("door closed").map(|it| it.value), Some(Value::Bool(true)));
}
