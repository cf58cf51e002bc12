//! `onbeat run` and `onbeat scan` on one end of a cable, `onbeat simulate` on the other: two
//! processes, real sockets, network namespaces made for the test.

use std::process::{Child, Command, Stdio};

use testkit::{Side, Testbed};

use crate::common::{
    Ran, Shared, finished, onbeat, shared, six_axis_with, undisturbed, undisturbed_with_losses,
};

pub(crate) const SIX_AXIS: &str = "examples/six-axis.toml";

/// A robot's SubDevices at the far end.
pub(crate) struct Wire {
    pub(crate) testbed: Testbed,
    pub(crate) simulator: Child,
    _shared: Shared,
}

impl Wire {
    /// `None`, with the reason on standard error, where test networks cannot be made.
    pub(crate) fn with(robot: &str) -> Option<Self> {
        Self::simulating(robot, &[])
    }

    /// The same, with these arguments for the simulator.
    pub(crate) fn simulating(robot: &str, arguments: &[&str]) -> Option<Self> {
        let shared = shared();
        let testbed = match Testbed::new() {
            Ok(testbed) => testbed,
            Err(skip) => {
                testkit::skip!("{skip}");
                return None;
            }
        };
        let mut command = onbeat();
        command.args(["simulate", robot, "--iface", Side::Far.interface()]).args(arguments);
        let mut command = testbed.run_in(Side::Far, command);
        let simulator = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the simulator");
        let wire = Self { testbed, simulator, _shared: shared };
        wire.await_answer();
        Some(wire)
    }

    pub(crate) fn onbeat(&self, arguments: &[&str]) -> Ran {
        let mut command = onbeat();
        command.args(arguments).args(["--iface", Side::Near.interface()]);
        let command: Command = self.testbed.run_in(Side::Near, command);
        finished(command)
    }

    /// The simulator needs a moment to open its interface.
    fn await_answer(&self) {
        for _ in 0..20 {
            if self.onbeat(&["scan", "--json"]).code == Some(0) {
                return;
            }
        }
        panic!("nobody answers at the far end");
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.simulator.kill();
        let _ = self.simulator.wait();
    }
}

fn all_enabled(end: &serde_json::Value) -> bool {
    end["axes"].as_array().expect("axes").iter().all(|axis| axis["state"] == "Operation enabled")
}

// feature(program): `simulate` and `run` on the two ends of a cable
#[test]
fn six_axes_run_over_a_cable() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let end = undisturbed(|| wire.onbeat(&["run", SIX_AXIS, "--cycles", "2000", "--json"]));
    assert_eq!(end["cycles"], 2000);
    assert_eq!(end["working_counter_errors"], 0);
    assert!(all_enabled(&end), "{end}");
    // The bus was left in Init and answers again.
    assert_eq!(wire.onbeat(&["scan", "--json"]).json().as_array().map(Vec::len), Some(6));
}

// feature(program): loss, delay, duplicates, reordering at 1 kHz for 10 s
#[test]
fn ten_seconds_of_every_fault_end_in_op_and_are_counted() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let faults = ["--loss", "1%", "--late", "1%", "--delay", "5ms", "--duplicate", "1%", "--reorder", "1%"];
    let arguments = [&["run", SIX_AXIS, "--cycles", "10000", "--json"][..], &faults].concat();
    let end = undisturbed_with_losses(|| wire.onbeat(&arguments));
    assert_eq!(end["cycles"], 10_000);
    assert_eq!(end["working_counter_errors"], 0);
    assert!(all_enabled(&end), "{end}");
    // About 1 % lost and 1 % too late of ten thousand frames; the rest is up to the machine.
    let count = |name: &str| end[name].as_u64().unwrap_or_else(|| panic!("{name} in {end}"));
    assert!(count("lost_frames") >= 150, "{end}");
    let reception = &end["frames"];
    for kind in ["late", "duplicate"] {
        assert!(reception[kind].as_u64().is_some_and(|it| it >= 50), "{kind} in {reception}");
    }
    let number = |name: &str| reception[name].as_u64().unwrap_or_else(|| panic!("{name} in {reception}"));
    // A frame or two may have been on their way when the bus was down.
    let unaccounted = number("sent") - number("accepted") - number("lost");
    assert!(unaccounted <= 3, "every frame is answered or lost: {reception}");
}

#[test]
fn the_wire_shows_the_same_errors_as_the_simulation() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let seven = six_axis_with("seven-drives.toml", "count = 6\ndevice", "count = 7\ndevice");
    let seven = seven.to_str().expect("UTF-8");
    let ran = wire.onbeat(&["run", seven, "--cycles", "10"]);
    assert_eq!(
        ran.sentence(),
        "onbeat: 6 SubDevices answer, expected 7: the first missing is SubDevice 6 \"drive-7\"; \
         check its power and the cable to it"
    );
}

// feature(program): `simulate` and `run` on the two ends of a cable
#[test]
fn sixty_four_drives_run_over_a_cable() {
    let robot = six_axis_with("sixty-four.toml", "count = 6\ndevice", "count = 64\ndevice");
    let robot = robot.to_str().expect("UTF-8");
    let Some(wire) = Wire::with(robot) else { return };
    // Slow: a machine that may be busy.
    let end = undisturbed(|| wire.onbeat(&["run", robot, "--period", "5ms", "--cycles", "400", "--json"]));
    assert_eq!(end["cycles"], 400);
    assert_eq!(end["working_counter_errors"], 0);
    assert!(all_enabled(&end), "{end}");
}

#[test]
fn an_empty_cable_gets_a_hint_to_check_it() {
    let _shared = shared();
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let mut scan = onbeat();
    scan.args(["scan", "--iface", Side::Near.interface()]);
    let ran = finished(testbed.run_in(Side::Near, scan));
    assert!(ran.sentence().contains("no SubDevice answers"), "{}", ran.stderr);
}
