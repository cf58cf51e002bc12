//! A controller in a separate process, as a program writes it: the example, and how it ends.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use onbeat::ipc::client::{Client, ControllerError};
use onbeat::ipc::state::{State, StopReason};
use onbeat::{Controller, IgnoredSetpoint, Robot, SignalError, Signals, StopHandle, Summary, external};
use types::{AxisMode, CyclicMode};

#[allow(dead_code, reason = "main is not called")]
#[path = "../examples/own_controller.rs"]
mod own_controller;
mod support;

use support::Positions;

/// A robot with a controller in another process, and the end of its run.
struct Cycle {
    socket: PathBuf,
    stop: StopHandle,
    thread: thread::JoinHandle<Summary>,
}

impl Cycle {
    fn start(name: &str) -> Self {
        let text = include_str!("../../../examples/six-axis.toml");
        let from = text.find("[controller]").unwrap();
        // A busy machine is no reason to stop the axes.
        let text = format!("{}[controller]\nkind = \"external\"\nmax_late = 1000\n", &text[..from]);
        let folder = std::env::temp_dir().join(format!("onbeat-external-{name}-{}", std::process::id()));
        let (socket, stop) = (folder.join("robot.sock"), StopHandle::new());
        let robot = Robot::parse(&text, "six-axis.toml").unwrap();
        let robot = robot.ipc(socket.to_str().unwrap()).stop(&stop);
        Self { socket, stop, thread: thread::spawn(move || robot.run_as_described().unwrap()) }
    }

    fn client(&self) -> Client {
        eventually(|| Client::open(&self.socket).ok())
    }

    fn finish(self) -> Summary {
        self.stop.stop();
        self.thread.join().unwrap()
    }
}

fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "too long");
        thread::sleep(Duration::from_millis(5));
    }
}

fn when(client: &Client, found: impl Fn(&State) -> bool) -> State {
    let state = client.state();
    eventually(|| state.read().ok().filter(|state| found(state)))
}

fn nod(client: &Client) -> own_controller::Nod {
    own_controller::Nod(vec![None; client.description().axes.len()])
}

// feature(ipc): `onbeat::external::run`: a `Controller` in a separate process; on a stop it stops the axes, disables them and ends
#[test]
fn example_nods_and_on_stop_disables_and_leaves() {
    let example = include_str!("../examples/external_controller.rs");
    assert!(example.lines().count() < 25);
    let cycle = Cycle::start("nods");
    let client = cycle.client();
    let (stop, asked) = (StopHandle::new(), cycle.client());
    let from_elsewhere = stop.clone();
    let process = thread::spawn(move || external::run(&asked, nod(&asked), &stop).unwrap());
    when(&client, |state| state.axes[..4].iter().all(|axis| axis.phase == 2 && axis.position.abs() > 0.02));
    let settings = external::Settings { priority: Some(100), cpu: None };
    let refused = external::run_with(&client, nod(&client), &StopHandle::new(), settings).unwrap_err();
    assert!(matches!(&refused, external::Error::Scheduling(_)), "{refused}");
    let taken = external::run(&client, nod(&client), &StopHandle::new()).unwrap_err();
    assert!(matches!(&taken, external::Error::Role(ControllerError::Taken { .. })), "{taken}");

    from_elsewhere.stop();
    let served = process.join().unwrap();
    assert!(served.answered > 100 && !served.cycle_ended, "{served:?}");
    let is_late = served.late + served.missed > 0;
    assert_eq!(served.advice().is_some(), is_late && !served.real_time, "{served:?}");
    // Its drives are disabled, by itself: supervision stopped none of them.
    let state = when(&client, |state| state.axes.iter().all(|axis| axis.phase == 0));
    assert!(state.axes.iter().all(|axis| axis.stop == 0), "{state:?}");
    assert_eq!(state.bus.phase, 7);

    // Another one follows it, and ends with the cycle.
    let (ended, told) = mpsc::channel();
    let asked = cycle.client();
    thread::spawn(move || ended.send(external::run(&asked, nod(&asked), &StopHandle::new())));
    when(&client, |state| state.axes.iter().all(|axis| axis.phase == 2));
    let summary = cycle.finish();
    assert!(told.recv_timeout(Duration::from_secs(30)).unwrap().unwrap().cycle_ended);
    assert!(summary.axis("axis-1").unwrap().was_enabled, "{summary}");
}

// feature(ipc): `onbeat::external::run`: a `Controller` in a separate process; on a stop it stops the axes, disables them and ends
#[test]
fn hurried_process_releases_the_role_at_once() {
    let cycle = Cycle::start("hurries");
    let (client, asked) = (cycle.client(), cycle.client());
    let stop = StopHandle::new();
    let from_elsewhere = stop.clone();
    let process = thread::spawn(move || external::run(&asked, nod(&asked), &stop).unwrap());
    when(&client, |state| state.axes.iter().all(|axis| axis.phase == 2));
    from_elsewhere.hurry();
    process.join().unwrap();
    when(&client, |state| state.axes.iter().all(|axis| axis.stop == StopReason::Stale as u8));
    cycle.finish();
}

// feature(axes): a set-point of a kind that the mode of the axis does not take is reported by an event and in the axis report
#[test]
fn wrong_setpoint_of_a_process_is_reported_in_the_cycle() {
    let cycle = Cycle::start("positions");
    let (client, asked) = (cycle.client(), cycle.client());
    let process = thread::spawn(move || external::run(&asked, Positions, &StopHandle::new()).unwrap());
    when(&client, |state| state.axes.iter().all(|axis| axis.phase == 2) && state.axes[0].position > 0.03);
    let summary = cycle.finish();
    process.join().unwrap();
    let ignored = |name| summary.axis(name).unwrap().ignored;
    let expected = IgnoredSetpoint { mode: AxisMode::CyclicVelocity, given: CyclicMode::Position };
    assert_eq!(
        [ignored("axis-1"), ignored("axis-5"), ignored("axis-6")],
        [None, Some(expected), Some(expected)]
    );
}

#[derive(Debug)]
struct Misspelt;

impl Controller for Misspelt {
    fn init(&mut self, signals: &Signals) -> Result<(), SignalError> {
        signals.input::<i32>("drive-1.position").map(drop)
    }
}

// feature(ipc): `onbeat::external::run`: a `Controller` in a separate process gets the same inputs and sends the same set-points as in the cycle's thread
#[test]
fn misspelt_signal_fails_the_start_with_suggestions() {
    let cycle = Cycle::start("misspelt");
    let client = cycle.client();
    let error = external::run(&client, Misspelt, &StopHandle::new()).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "the controller cannot start: no input is called \"drive-1.position\"; near it: \"drive-1."
        ),
        "{error}"
    );
    drop(client.controller().unwrap());
    cycle.finish();
}
