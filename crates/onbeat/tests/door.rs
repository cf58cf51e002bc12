//! A custom controller with an axis and signals: the example that the documentation shows.
//!
//! Oversampling terminals of a robot file, by its controller: samples of a cycle as slices.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/door.rs"]
mod example;

use std::f64::consts::TAU;
use std::sync::mpsc::{Sender, channel};

use onbeat::{Controller, CycleInfo, Input, Io, Output, Robot, SignalError, Signals, Value};
use onbeat_ethercat_linux::{Bus, Configuration};

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

// feature(library): a robot with a custom controller, or with wrapped controllers of its file
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

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/vibration.rs"]
mod vibration;

const FILE: &str = include_str!("../../../examples/vibration.toml");

fn robot(text: &str) -> Robot {
    Robot::parse(text, "vibration.toml").unwrap().without_ipc()
}

/// Hands on number and samples of each block that comes in.
struct Samples {
    handles: Option<(Input<u16>, Vec<Input<f64>>)>,
    blocks: Sender<(u16, Vec<f64>)>,
}

impl Controller for Samples {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.handles = Some((signals.input("block")?, signals.input_slice("vibration")?));
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let Some((block, inputs)) = &self.handles else { return };
        let mut samples = vec![0.0; inputs.len()];
        assert_eq!(io.get_slice(inputs, &mut samples), 10);
        if io.is_fresh(*block) {
            let _ = self.blocks.send((io.get(*block), samples));
        }
    }
}

/// The simulated vibration is a sine of 120 Hz: consecutive blocks continue it, sample by sample.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn samples_of_consecutive_blocks_form_one_wave() {
    let (blocks, seen) = channel();
    robot(FILE).cycles(400).run(Samples { handles: None, blocks }).unwrap();
    let mut blocks: Vec<(u16, Vec<f64>)> = seen.try_iter().collect();
    // Before the first block.
    blocks.retain(|(number, _)| *number > 0);
    // On a machine that stalls at times some are read twice, and some not at all.
    blocks.dedup_by_key(|(number, _)| *number);
    let in_a_row = blocks.chunk_by(|(one, _), (next, _)| one.wrapping_add(1) == *next);
    let longest = in_a_row.max_by_key(|row| row.len()).unwrap();
    let samples: Vec<f64> = longest.iter().flat_map(|(_, samples)| samples.iter().copied()).collect();
    assert!(samples.len() >= 20, "{} samples in a row", samples.len());
    // Three samples of a sine in a row: their sum without the middle is the middle times twice the
    // cosine of a step.
    let twice = 2.0 * (TAU * 120.0 / 10_000.0).cos();
    for (number, three) in samples.windows(3).enumerate() {
        let wrong = three[0] + three[2] - twice * three[1];
        // Each is rounded to a digit of 0.003, and a pulse that falls into the time of a frame on
        // the bus comes with it, some us late; a sample that is there twice would be off by up to
        // 2.7.
        assert!(wrong.abs() < 0.1, "sample {number}: {three:?}");
    }
    let highest = samples.iter().fold(0.0_f64, |highest, sample| highest.max(sample.abs()));
    assert!(highest > 1.0 && highest < 36.7, "{highest}");
}

/// Drives one wave in every cycle.
struct Wave(Vec<Output<f64>>);

const WAVE: [f64; 10] = [1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0, -9.5];

impl Controller for Wave {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        self.0 = signals.output_slice("shaker")?;
        Ok(())
    }

    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        io.set_slice(&self.0, &WAVE);
    }
}

/// Inputs wired to the outputs measure, half a sample later, each sample that these drive.
// feature(signals): oversampling: `oversampling` in `dc`, signals that are the samples of a channel in a cycle
#[test]
fn a_wave_that_is_driven_comes_back_sample_by_sample() {
    let wired = FILE
        .replace("frequency = 120.0, amplitude = 12000.0", "source = \"outputs\"")
        .replace("writer = \"outside\"", "");
    let summary = robot(&wired).cycles(300).run(Wave(Vec::new())).unwrap();
    for (number, volts) in WAVE.into_iter().enumerate() {
        let Value::Real(found) = summary.signal(&format!("vibration[{number}]")).unwrap().value else {
            panic!("a scaled signal");
        };
        // 10 m/s² for each volt.
        assert!((found - 10.0 * volts).abs() < 0.005, "sample {number}: {found}");
    }
}

/// The vibration finds its signals, however many samples the robot file says.
#[test]
fn the_example_runs() {
    assert!(include_str!("../examples/vibration.rs").lines().count() < 60);
    let summary = robot(FILE).cycles(100).run(vibration::Vibration::default()).unwrap();
    assert!(summary.signal("vibration[9]").is_some() && summary.signal("vibration[10]").is_none());
}
