//! Refusals and stops with their reasons: interlocks by name, tried with simulated inputs.

use std::process::Command;

use onbeat::ipc::state::{State, StopReason};

use crate::common::{Ran, Running, file, finished, onbeat, shared};
use crate::robots::Robot;

/// One drive. Its E-stop is input 1 of a terminal, and low at the start.
fn with_emergency_stop() -> String {
    let drive = include_str!("../../../../examples/first-drive.toml");
    // A shared machine stalls now and then.
    let drive = drive.replace("[cycle]\n", "[cycle]\noutage_time = \"10s\"\n");
    let stop = "\
[bus]
process_data_watchdog = \"2min\"

[[bus.sub_device]]
name = \"inputs-1\"
simulate = { kind = \"digital_inputs\", channels = 4, initial = [false] }

[[interlock]]
name = \"e-stop\"
kind = \"stop\"
sub_device = \"inputs-1\"
channel = 1
axes = [\"shaft\"]
";
    format!("{drive}\n{stop}")
}

fn control(robot: &Robot, arguments: &[&str]) -> Command {
    let mut command = onbeat();
    command.args(["control", "--cycle"]).arg(robot.ipc.path()).args(arguments);
    command
}

fn asked(robot: &Robot, arguments: &[&str]) -> Ran {
    finished(control(robot, arguments))
}

// feature(program): refusals of `onbeat control` name the interlock, its input and level, and the next command
// feature(simulator): `onbeat fault input` and `initial` set the digital inputs of a simulated terminal
#[test]
fn an_emergency_stop_is_named_at_the_start_and_in_motion() {
    let _shared = shared();
    let path = file("emergency-stop.toml", &with_emergency_stop());
    let name = format!("reasons-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::attached("reasons", path.to_str().expect("UTF-8"), &arguments);
    let is_low = |state: &State| state.interlocks[0].level == 1;
    let before = robot.until("low", is_low).cycle;
    let low = "interlock \"e-stop\" (inputs-1, channel 1) is low";
    let remedy = "release it, then `onbeat control reset`";
    for (request, not) in [("reset", "not reset"), ("enable", "not enabled")] {
        let ran = asked(&robot, &[request]);
        let expected = format!("{not}: shaft: {low}; {remedy}");
        assert!(ran.code == Some(1) && ran.sentence().contains(&expected), "{}", ran.stderr);
    }
    // A request is given up after 1000 of these cycles.
    let cycles = robot.until("answered", |_| true).cycle - before;
    assert!(cycles < 1_000, "the refusals took {cycles} cycles");
    let ran = asked(&robot, &["move", "shaft", "0.1"]);
    assert!(ran.code == Some(1) && ran.sentence().contains(low), "{}", ran.stderr);

    let fault = |level: &str| {
        let mut command = onbeat();
        command.args(["fault", "--of", &name, "input", "inputs-1:1", level]);
        let ran = finished(command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    fault("high");
    robot.until("high", |state| state.interlocks[0].permits);
    let ran = asked(&robot, &["enable"]);
    let again = "interlock \"e-stop\" (inputs-1, channel 1) is high again; type `onbeat control reset`";
    assert!(ran.code == Some(1) && ran.sentence().contains(again), "{}", ran.stderr);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    robot.until("enabled", |state| state.axes[0].phase == 2);

    // It would take minutes.
    let moving = Running::start(control(&robot, &["move", "--speed", "1%", "shaft", "5"]));
    robot.until("under way", |state| state.axes[0].position > 0.01);
    fault("low");
    let ran = moving.finish();
    assert!(ran.code == Some(1) && ran.stderr.contains(low), "{}", ran.stderr);
    let end = robot.end();
    assert_eq!(end.code, Some(3), "{}", end.stderr);
    let held = format!("axis \"shaft\" is held: {low}");
    assert!(end.stderr.matches(&held).count() >= 2, "at the start and in motion: {}", end.stderr);
    assert!(end.stderr.contains(&format!("supervision stopped axis \"shaft\": {low}")), "{}", end.stderr);
}

// feature(program): a SubDevice without process data that does not answer is named as the cause
#[test]
fn a_coupler_without_power_is_the_one_that_is_named() {
    let _shared = shared();
    let coupler = "[[bus.sub_device]]\nname = \"coupler\"\nsimulate = { kind = \"coupler\" }\n\n";
    let text = with_emergency_stop().replace("[false]", "[true]");
    let text = text.replacen("[[bus.sub_device]]", &format!("{coupler}[[bus.sub_device]]"), 1);
    let text = text.replace("outage_time = \"10s\"", "outage_time = \"20ms\"");
    let path = file("coupler-off.toml", &text);
    let name = format!("coupler-off-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::run("coupler-off", path.to_str().expect("UTF-8"), &arguments);
    let mut command = onbeat();
    command.args(["fault", "--of", &name, "power", "off", "coupler"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lost = robot.until("lost", |state| state.axes[0].stop == StopReason::Outage as u8).cycle;
    // `run` names a loss after 100 ms.
    robot.until("some cycles later", |state| state.cycle > lost + 20);
    let cable = "behind the cable between the network interface and SubDevice 0 \"coupler\" port 0";
    let ran = asked(&robot, &["enable"]);
    assert!(ran.code == Some(1) && ran.sentence().contains(cable), "{}", ran.stderr);
    let end = robot.end();
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let all =
        "no process data of SubDevice 0 \"coupler\", SubDevice 1 \"drive\", SubDevice 2 \"inputs-1\",";
    let lost = end.stderr.lines().find(|it| it.contains(all));
    assert!(lost.is_some_and(|it| it.contains(cable)), "{}", end.stderr);
    let silent = "SubDevice 0 \"coupler\" did not answer in the last";
    assert!(end.stderr.contains(silent), "{}", end.stderr);
}

// feature(program): `onbeat control reset` names the step that stopped an axis whose drive does not carry out a quick stop
#[test]
fn a_reset_names_the_step_that_replaced_the_quick_stop() {
    let _shared = shared();
    let text = include_str!("../../../../examples/first-drive.toml");
    let text = text.replace("kind = \"servo_drive\"\n", "kind = \"servo_drive\"\nquick_stop = false\n");
    let text = text.replace("[cycle]\n", "[cycle]\noutage_time = \"1s\"\n");
    let text = format!("{text}\n[bus]\nprocess_data_watchdog = \"2min\"\n");
    let path = file("no-quick-stop.toml", &text);
    let name = format!("no-quick-stop-{}", std::process::id());
    let arguments = ["--period", "10ms", "--control", &name];
    let robot = Robot::run("no-quick-stop", path.to_str().expect("UTF-8"), &arguments);
    let mut command = onbeat();
    command.args(["fault", "--of", &name, "frames", "lose", "100%", "for", "2s"]);
    let ran = finished(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    robot.until("stopped by set-points", |state| state.axes[0].quick_stop == 1);
    let step = "its drive does not carry out the quick stop, it was stopped by set-points to standstill";
    let ran = asked(&robot, &["enable"]);
    let remedy = "check the power of SubDevice 0 \"drive\" and its cables, then `onbeat control reset`";
    let expected = format!("(outage); {step}; {remedy}");
    assert!(ran.code == Some(1) && ran.sentence().contains(&expected), "{}", ran.stderr);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    let expected = format!("shaft: reset; {step}: correct its 0x605A or its firmware\n");
    assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    // The next reset has nothing to name.
    robot.until("its controller's again", |state| state.axes[0].phase == 2);
    let ran = asked(&robot, &["reset"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stderr);
    assert_eq!(robot.end().code, Some(0));
}
