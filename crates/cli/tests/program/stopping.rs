//! Signals to a run whose axes need long to come to rest: the second one ends it within two seconds.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Running, alone, await_beats, onbeat, six_axis_with, slept};

/// Cycles, one a millisecond, from the last signal to the end, of a run that is sent this many. A machine that stands still
/// leaves cycles out: it makes them fewer.
fn cycles_to_the_end(robot: &str, signals: usize) -> u64 {
    let mut command = onbeat();
    command.args(["run", robot, "--json", "--no-seam"]);
    let running = Running::start(command);
    // In Op, and a quarter of a swing later.
    await_beats(running.id(), 5_000);
    let process = Pid::from_raw(running.id() as i32).expect("a process");
    for number in 0..signals {
        if number > 0 {
            std::thread::sleep(Duration::from_millis(400));
        }
        kill_process(process, Signal::INT).expect("a signal");
    }
    let begin = slept(running.id()).expect("it does not end before the last signal");
    let mut end = begin;
    while let Some(now) = slept(running.id()) {
        end = now;
        std::thread::sleep(Duration::from_millis(2));
    }
    let ran = running.finish();
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    end - begin
}

#[test]
fn a_second_signal_brings_axes_that_brake_slowly_to_rest_and_ends_within_two_seconds() {
    let slow = "limits = { velocity = 50.0, torque = 4.8, acceleration = 1.3 }\non_stale";
    let robot =
        six_axis_with("slow-brakes.toml", "limits = { velocity = 50.0, torque = 4.8 }\non_stale", slow);
    let text = std::fs::read_to_string(&robot).expect("it was just written");
    let text = text
        .replace("amplitude = 1.0 ", "amplitude = 8.0 ")
        .replace("frequency = 0.5 ", "frequency = 0.0637 ");
    std::fs::write(&robot, text.replace("phase_step = 1.0472", "phase_step = 0.0")).expect("a file");
    let robot = robot.to_str().expect("UTF-8");
    let _alone = alone();
    let (one, two) = (cycles_to_the_end(robot, 1), cycles_to_the_end(robot, 2));
    assert!(one > 2_400, "{one} cycles: its ramp is too short to tell");
    assert!(two <= 2_000, "{two} cycles after the second signal, {one} after only one");
}
