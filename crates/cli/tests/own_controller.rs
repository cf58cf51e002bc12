//! Controllers of one's own, by the library: the example that the documentation shows, and what a controller may have.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onbeat::{AxisCommand, AxisReport, Beat, Controller, Request, Run};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/own_controller.rs"]
mod example;

fn six_axis() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml"))
}

#[test]
fn the_example_nods_without_a_working_counter_error() {
    let example = include_str!("../examples/own_controller.rs");
    assert!(example.lines().count() < 40);
    let run = Run::of(six_axis()).cycles(1_500).option(&["--no-seam"]);
    let finished = run.with(|robot| example::Nod(vec![None; robot.axes().len()])).unwrap();
    assert_eq!(finished.cycles, 1_500);
    assert!(finished.to_string().contains("Operation enabled"), "{finished}");
    let json: serde_json::Value = serde_json::from_str(&finished.json).unwrap();
    let position = |axis: usize| json["axes"][axis]["position"].as_f64().unwrap();
    // A quarter of a swing about zero; the velocity axes run on.
    assert!((0..4).all(|axis| position(axis).abs() > 0.01 && position(axis).abs() < 0.5), "{json}");
}

/// Enables nothing, and counts its beats.
struct Idle(Arc<AtomicU64>);

impl Controller for Idle {
    fn update(&mut self, _: Beat, _: &[AxisReport], commands: &mut [AxisCommand]) {
        commands.iter_mut().for_each(|command| command.request = Request::Disable);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_controller_gets_the_ports_of_the_seam_once() {
    let beats = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&beats);
    let socket = std::env::temp_dir().join(format!("onbeat-own-{}", std::process::id())).join("own.sock");
    // Longer than a drive is waited for: axes that nobody asks to be enabled are no failure.
    let run = Run::of(six_axis()).cycles(1_200).option(&["--seam", socket.to_str().unwrap()]);
    run.with(|robot| {
        assert_eq!(robot.axes()[5], "axis-6");
        assert!(robot.port("control").is_some() && robot.port("control").is_none());
        assert!(robot.port("no such port").is_none());
        Idle(counted)
    })
    .unwrap();
    assert!(beats.load(Ordering::Relaxed) >= 1_200);
}

#[test]
fn a_robot_file_or_an_option_that_is_wrong_is_one_sentence() {
    let error = onbeat::run("no-such-robot.toml", Idle(Arc::default())).unwrap_err();
    assert!(error.to_string().contains("no-such-robot.toml"), "{error}");
    let wrong = Run::of(six_axis()).option(&["--no-such-option"]).with(|_| Idle(Arc::default()));
    assert!(wrong.unwrap_err().to_string().contains("--no-such-option"));
}
