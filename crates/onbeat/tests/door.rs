//! A custom controller with an axis and signals: the example that the documentation shows.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::mpsc::{Sender, channel};

use onbeat::{Controller, CycleInfo, Input, Io, Output, Robot, SignalError, Signals, Value};
use onbeat_ethercat_linux::{Bus, Configuration};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/door.rs"]
mod example;

/// Opens and closes the door: its simulated switch shows the lamp's output.
struct Visitor {
    door: example::Door,
    signals: Option<(Input<bool>, Output<bool>)>,
    /// Cycles since the axis follows.
    cycles: u64,
    /// True if the door is closed; the commanded velocity in rad per cycle.
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

/// The first program of the README, but for its interface.
// feature(bus): the first program of the README runs as it is on the bus that it names
#[test]
fn the_first_program_of_the_readme_runs_on_the_station() {
    let pages = [
        include_str!("../../../README.md"),
        include_str!("../../ethercat-linux/README.md"),
        include_str!("../../ethercat-linux/src/lib.rs"),
    ];
    for line in [
        "let vendor: u32 = bus.subdevice(3).sdo_read(0x1018, 1)?; // as in examples/io-station.toml\n",
        "let lamp = bus.subdevice(1).output::<bool>(0x7000, 1)?;\n",
        "let button = bus.subdevice(2).input::<bool>(0x6000, 1)?;\n",
    ] {
        assert!(pages.iter().all(|page| page.contains(line)), "{line}");
    }
    let station = Robot::load("../../examples/io-station.toml").unwrap();
    let segment = onbeat::compose::segment::segment(station.config()).unwrap();
    let mut bus = Bus::simulated(segment);
    bus.bring_up(&Configuration::scan()).unwrap();
    let vendor: u32 = bus.subdevice(3).sdo_read(0x1018, 1).unwrap();
    let lamp = bus.subdevice(1).output::<bool>(0x7000, 1).unwrap();
    let button = bus.subdevice(2).input::<bool>(0x6000, 1).unwrap();
    let mut cycles = 0;
    let report = bus.run(std::time::Duration::from_millis(1), |io| {
        io.set(lamp, io.get(button));
        cycles += 1;
        if cycles == 20 {
            io.stop();
        }
    });
    assert_eq!((vendor, report.unwrap().cycles), (2, 20));
}
