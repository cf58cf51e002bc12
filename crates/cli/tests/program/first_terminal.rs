//! docs/first-terminal.md, as a reader follows it.

use crate::common::{Ran, Running, finished, folder, onbeat, run, shared};
use crate::robots::Robot;

const SEGMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/first-terminal.toml");

fn io(robot: &Robot, arguments: &[&str]) -> std::process::Command {
    let mut command = onbeat();
    command.arg("io").args(arguments).env("ONBEAT_IPC", robot.ipc.path());
    command
}

fn value(robot: &Robot, name: &str) -> String {
    let Ran { stdout, stderr, .. } = finished(io(robot, &["get", name]));
    assert!(!stdout.is_empty(), "{stderr}");
    stdout.trim_end().to_owned()
}

fn until(robot: &Robot, name: &str, expected: &str) {
    let started = std::time::Instant::now();
    while value(robot, name) != expected {
        assert!(started.elapsed().as_secs() < 30, "{name} is {}, not {expected}", value(robot, name));
    }
}

// feature(signals): from a bus to named signals with units, as docs/first-terminal.md says
#[test]
fn the_first_terminal_does_as_its_page_says() {
    let draft = folder("first-terminal").join("bench.toml");
    let path = draft.to_str().expect("UTF-8");
    assert_eq!(run(&["scan", "--segment", SEGMENT, "-v"]).code, Some(0));
    assert_eq!(run(&["new", "--segment", SEGMENT, "-o", path]).code, Some(0));
    assert_eq!(run(&["check", path]).code, Some(0));
    let of_first = "name = \"el3104 channel 1\"";
    let text = std::fs::read_to_string(&draft).expect("the draft");
    assert!(text.contains("name = \"el2004 Channel 1\"") && text.contains(of_first), "{text}");
    let scaled = "name = \"pressure\"\nunit = \"bar\"\nscale = 0.000305185\nrange = [0.0, 10.0]";
    let text = text.replace("name = \"el2004 Channel 1\"", "name = \"red lamp\"").replace(of_first, scaled);
    std::fs::write(&draft, text).expect("the file");
    assert_eq!(run(&["check", path]).code, Some(0));

    let _shared = shared();
    let robot = Robot::run("first-terminal", path, &["--segment", SEGMENT, "--period", "10ms"]);
    robot.until("in Op", |state| state.cycle > 20 && state.bus.all_fresh);
    assert_eq!(
        (value(&robot, "red lamp"), value(&robot, "el1008 Channel 1")),
        ("false".into(), "false".into())
    );
    let mut holds = Running::start(io(&robot, &["set", "red lamp", "true"]));
    until(&robot, "red lamp", "true");
    // The input of its number is wired to it.
    until(&robot, "el1008 Channel 1", "true");
    let pressure: f64 =
        value(&robot, "pressure").split(' ').next().expect("a number").parse().expect("a number");
    assert!((1.0..7.0).contains(&pressure), "{pressure} bar");
    // Its program is killed: the command goes stale.
    holds.kill();
    until(&robot, "red lamp", "false");
    until(&robot, "el1008 Channel 1", "false");
    assert_eq!(finished(io(&robot, &["set", "red lamp", "true", "--for", "100ms"])).code, Some(0));
    until(&robot, "red lamp", "false");
    robot.end();
}
