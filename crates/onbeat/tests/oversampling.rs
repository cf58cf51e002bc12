//! Oversampling terminals of a robot file, by its controller: samples of a cycle as slices.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::f64::consts::TAU;
use std::sync::mpsc::{Sender, channel};

use onbeat::{Controller, CycleInfo, Input, Io, Output, Robot, SignalError, Signals, Value};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/vibration.rs"]
mod example;

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

/// The example finds its signals, however many samples the robot file says.
#[test]
fn the_example_runs() {
    assert!(include_str!("../examples/vibration.rs").lines().count() < 60);
    let summary = robot(FILE).cycles(100).run(example::Vibration::default()).unwrap();
    assert!(summary.signal("vibration[9]").is_some() && summary.signal("vibration[10]").is_none());
}
