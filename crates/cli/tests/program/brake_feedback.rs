//! Feedback of a brake: the whole program, with a simulated brake that sticks.

use std::process::Command;

use ethercat::cia402::State as DriveState;
use onbeat::ipc::state::{State, StopReason};

use crate::common::{Ran, file, finished, onbeat, shared};
use crate::robots::Robot;

/// One drive with a load on a brake with feedback.
pub(crate) fn with_brake() -> String {
    let drive = include_str!("../../../../examples/first-drive.toml");
    // A shared machine stalls now and then.
    let drive = drive.replace("[cycle]\n", "[cycle]\noutage_time = \"10s\"\n");
    let axis = "name = \"shaft\"\n";
    assert!(drive.contains(axis));
    let brake = "\
name = \"shaft\"
holds_load = true
brake.release = \"80ms\"
brake.engage = \"50ms\"
brake.output = { sub_device = \"outputs\", channel = 2 }
brake.feedback.released = { sub_device = \"inputs\", channel = 1 }
brake.feedback.closed = { sub_device = \"inputs\", channel = 3, inverted = true }
";
    let terminals = "\
[bus]
process_data_watchdog = \"2min\"

[[bus.sub_device]]
name = \"outputs\"
simulate = { kind = \"digital_outputs\", channels = 4 }

[[bus.sub_device]]
name = \"inputs\"
simulate = { kind = \"digital_inputs\", channels = 4 }
";
    format!("{}\n{terminals}", drive.replacen(axis, brake, 1))
}

// feature(program): a brake that sticks is named with its input and level, keeps the torque on a load, and refuses the reset
// feature(simulator): simulated brakes follow their coils, show it at digital inputs, and stick (`onbeat fault brake`)
#[test]
fn a_stuck_brake_is_named_and_its_load_is_held() {
    let _shared = shared();
    let path = file("brake-feedback.toml", &with_brake());
    let name = format!("brakes-{}", std::process::id());
    let robot =
        Robot::run("brakes", path.to_str().expect("UTF-8"), &["--period", "10ms", "--control", &name]);
    let asked = |program: &str, arguments: &[&str]| -> Ran {
        let mut command: Command = onbeat();
        command.arg(program);
        match program {
            "control" => command.arg("--cycle").arg(robot.ipc.path()),
            _ => command.args(["--of", &name]),
        };
        command.args(arguments);
        finished(command)
    };
    let fault = |line: &[&str]| {
        let ran = asked("fault", line);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    };
    let is = |reason: StopReason, drive: DriveState| {
        move |state: &State| (state.axes[0].stop, state.axes[0].drive_state) == (reason as u8, drive as u8)
    };
    fault(&["drive", "load", "drive", "0.5Nm"]);
    fault(&["brake", "stuck-open", "drive"]);
    let at = robot.until("loaded", |_| true).axes[0].position;

    // The drive keeps its torque: the load does not fall.
    let ran = asked("control", &["disable"]);
    let kept = "not disabled: shaft: its brake is not closed";
    assert!(ran.code == Some(1) && ran.stderr.contains(kept), "{}", ran.stderr);
    let held = robot.until("held", is(StopReason::BrakeNotClosed, DriveState::OperationEnabled));
    assert!((held.axes[0].position - at).abs() < 0.1, "{held:?}");
    let why =
        "its brake is not closed, as its feedback shows: input \"closed\" (inputs, channel 3) is high";
    let ran = asked("control", &["reset"]);
    let refused = format!("not reset: shaft: {why}");
    assert!(ran.code == Some(1) && ran.stderr.contains(&refused), "{}", ran.stderr);

    // Free again it closes, and takes the load.
    fault(&["brake", "free", "drive"]);
    robot.until("closed", is(StopReason::BrakeNotClosed, DriveState::SwitchOnDisabled));
    let ran = asked("control", &["reset"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    let ran = asked("control", &["enable"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{}", ran.stderr);
    let enabled = robot.until("enabled", |state| state.axes[0].phase == 2);
    assert!((enabled.axes[0].position - at).abs() < 0.1, "{enabled:?}");

    fault(&["brake", "stuck-closed", "drive"]);
    robot.until("stopped", is(StopReason::BrakeNotOpen, DriveState::SwitchOnDisabled));
    let end = robot.end();
    assert_eq!(end.code, Some(3), "{}", end.stderr);
    let not_open =
        "its brake is not open, as its feedback shows: input \"released\" (inputs, channel 1) is low";
    for line in [
        format!("axis \"shaft\" is held: {why}"),
        format!("axis \"shaft\" is held: {not_open}"),
        format!("supervision stopped axis \"shaft\": {not_open}"),
    ] {
        assert!(end.stderr.contains(&line), "{line}\n{}", end.stderr);
    }
}
