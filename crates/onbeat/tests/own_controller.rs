//! Custom controllers: the example that the documentation shows, and the parts that a controller
//! may take.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onbeat::{Control, Controller, CycleEvent, CycleInfo, Happening, Io, Reporter, Request, Robot};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/own_controller.rs"]
mod example;
mod support;

use support::Positions;

fn six_axis() -> Robot {
    Robot::load(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml")).unwrap()
}

// feature(library): a robot with a custom controller, or with wrapped controllers of its file
#[test]
fn the_example_nods_without_a_working_counter_error() {
    let example = include_str!("../examples/own_controller.rs");
    assert!(example.lines().count() < 40);
    let robot = six_axis().cycles(1_500).without_ipc();
    let nod = example::Nod(vec![None; robot.axes().len()]);
    let summary = robot.run(nod).unwrap();
    assert_eq!(summary.cycles(), 1_500);
    let axis = |number: usize| summary.axis(&format!("axis-{number}")).unwrap();
    assert!((1..=6).all(|number| axis(number).was_enabled), "{summary:?}");
    // A quarter of a swing about zero; the velocity axes run on.
    let position = |number: usize| axis(number).feedback.position.0.abs();
    assert!((1..=4).all(|number| (0.01..0.5).contains(&position(number))), "{summary:?}");
    assert!(summary.axis("axis-7").is_none());
}

/// Enables nothing, and counts its cycles.
struct Idle(Arc<AtomicU64>);

impl Controller for Idle {
    fn update(&mut self, _: CycleInfo, io: &mut Io<'_>) {
        let commands = io.commands();
        commands.iter_mut().for_each(|command| command.request = Request::Disable);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_controller_gets_the_ports_of_the_ipc_once() {
    let cycles = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&cycles);
    let socket = std::env::temp_dir().join(format!("onbeat-own-{}", std::process::id())).join("own.sock");
    let robot = six_axis().ipc(socket.to_str().unwrap());
    assert_eq!(robot.axes().nth(5), Some("axis-6"));
    // Longer than a drive is waited for: axes that are not asked to be enabled are no failure.
    let summary = robot.cycles(1_200).run_with(|parts| {
        assert!(parts.port("control").is_some() && parts.port("control").is_none());
        assert!(parts.port("no such port").is_none());
        Idle(counted)
    });
    assert_eq!(summary.unwrap().cycles(), 1_200);
    assert!(cycles.load(Ordering::Relaxed) >= 1_200);
}

// feature(library): a robot with a custom controller, or with wrapped controllers of its file
#[test]
fn the_controllers_of_the_robot_file_can_be_wrapped() {
    struct Wrapped<C>(C);
    impl<C: Controller> Controller for Wrapped<C> {
        fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
            self.0.update(info, io);
        }
    }
    let robot = six_axis().without_ipc().cycles(300);
    let controllers = robot.controllers().unwrap();
    let summary = robot.clone().run(Wrapped(controllers)).unwrap();
    assert!(summary.axis("axis-1").unwrap().was_enabled);
    assert!(robot.run_as_described().unwrap().axis("axis-1").unwrap().was_enabled);
}

#[derive(Default)]
struct Events(Vec<CycleEvent>);

impl Reporter for Events {
    fn events(&mut self, events: Vec<CycleEvent>) {
        self.0.extend(events);
    }
}

// feature(axes): a set-point of a kind that the mode of the axis does not take is reported by an event and in the axis report
#[test]
fn wrong_setpoint_for_the_mode_is_reported() {
    let ignored = |control: Control<'_>| {
        let mut told = Events::default();
        six_axis().without_ipc().cycles(1_500).run_by(control, &mut told).unwrap();
        let ignored = told.0.iter().filter_map(|event| match event.what {
            Happening::SetpointIgnored { axis, what } => {
                Some((axis, what.mode.name(), what.given.setpoint()))
            }
            _ => None,
        });
        let mut ignored: Vec<_> = ignored.collect();
        ignored.sort_unstable();
        ignored
    };
    // The first four are in CSP, the others in CSV.
    let expected = [(4, "csv", "a position"), (5, "csv", "a position")];
    assert_eq!(ignored(Control::own(Positions)), expected);
    let axes = six_axis().axes().len();
    assert_eq!(ignored(Control::own(example::Nod(vec![None; axes]))), []);
    assert_eq!(ignored(Control::AsDescribed), []);
}
