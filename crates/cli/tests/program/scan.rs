//! `onbeat scan`: lists the SubDevices on the bus.
//!
//! docs/first-terminal.md, as a reader follows it.
//!
//! Watchdogs: reported by `onbeat scan -v`, and a warning of `onbeat run` for outputs without one.

use crate::common::{Ran, Running, file, finished, folder, onbeat, run, shared, six_axis_with};
use crate::robots::Robot;

// feature(program): `scan`
#[test]
fn json_has_one_object_for_each_sub_device() {
    let found = run(&["scan", "--json"]).json();
    let found = found.as_array().expect("an array");
    assert_eq!(found.len(), 6);
    for (position, sub_device) in found.iter().enumerate() {
        assert_eq!(sub_device["position"], position);
        assert_eq!(sub_device["vendor_id"], 0xFFFF_0B01_u32);
        assert_eq!(sub_device["product_code"], 0x0402);
        assert_eq!(sub_device["revision"], 0x0001_0000);
        assert_eq!(sub_device["name"], format!("drive-{}", position + 1));
        assert_eq!(sub_device["state"], "PreOp");
    }
}

// feature(program): `scan`
#[test]
fn the_tree_shows_branches_where_the_cable_branches() {
    let ran = run(&["scan", "examples/humanoid-59.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.lines().filter(|line| line.contains("port")).count();
    assert_eq!(lines, 6, "{}", ran.stdout);
    assert!(ran.stdout.contains("left-foot"), "{}", ran.stdout);
}

#[test]
fn details_show_the_process_data() {
    let ran = run(&["scan", "examples/io-station.toml", "-v"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in ["coupler", "0x044c2c52", "lamps", "0x7000:01", "0x607a:00", "target position"] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
}

#[test]
fn fewer_sub_devices_than_described_name_the_first_missing() {
    let fewer = six_axis_with("fewer.toml", EVERY_DRIVE, "name = \"drive-{}\"\ncount = 4");
    let fewer = keep_bus_only(&fewer);
    for command in ["scan", "run"] {
        let ran = run(&[command, "examples/six-axis.toml", "--segment", &fewer]);
        let sentence = ran.sentence();
        for part in ["4", "6", "\"drive-5\""] {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}

#[test]
fn surplus_sub_devices_are_named() {
    let more = six_axis_with("more.toml", EVERY_DRIVE, "name = \"drive-{}\"\ncount = 7");
    let more = keep_bus_only(&more);
    let ran = run(&["scan", "examples/six-axis.toml", "--segment", &more]);
    let sentence = ran.sentence();
    assert!(sentence.contains("7 SubDevices") && sentence.contains("0xffff0b01"), "{sentence}");
}

#[test]
fn another_sub_device_than_described_shows_both_identities() {
    let other = six_axis_with("other.toml", "product_code = 0x0000_0402", "product_code = 0x0000_0777");
    let ran =
        run(&["run", "examples/six-axis.toml", "--segment", other.to_str().unwrap(), "--cycles", "10"]);
    let sentence = ran.sentence();
    for part in ["SubDevice 0", "drive-1", "0x00000402", "0x00000777"] {
        assert!(sentence.contains(part), "{sentence}");
    }
}

const EVERY_DRIVE: &str = "name = \"drive-{}\"\ncount = 6";

/// A segment needs no axes: axes of the file would lack their drives.
fn keep_bus_only(path: &std::path::Path) -> String {
    let text = std::fs::read_to_string(path).expect("the file just written");
    let axes = text.find("[[axis]]").expect("axes");
    std::fs::write(path, &text[..axes]).expect("a file in the target folder");
    path.to_str().expect("UTF-8").to_owned()
}

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

// feature(program): watchdogs in the robot file, in `scan -v`, and a warning where outputs have none
#[test]
fn details_show_the_watchdogs() {
    let path = six_axis_with("watchdog.toml", "[bus]", "[bus]\nprocess_data_watchdog = \"30ms\"");
    let ran = run(&["scan", path.to_str().unwrap(), "-v"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.matches("process data watchdog 30ms, PDI watchdog 100ms").count();
    assert_eq!(lines, 6, "{}", ran.stdout);
}

// feature(program): watchdogs in the robot file, in `scan -v`, and a warning where outputs have none
#[test]
fn a_run_warns_of_outputs_that_nothing_watches() {
    let text = r#"
name = "unwatched"

[cycle]
period = "1ms"

[bus]
process_data_watchdog = "off"

[[bus.sub_device]]
name = "valves"
simulate = { kind = "digital_outputs", channels = 8 }
"#;
    let path = file("unwatched.toml", text);
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "10"]);
    let warned = "SubDevice 0 \"valves\" has no process data watchdog";
    assert!(ran.stderr.contains(warned), "{}", ran.stderr);
    let ran = run(&["run", "--cycles", "10"]);
    assert!(!ran.stderr.contains("watchdog"), "{}", ran.stderr);
}

// feature(axes): the watchdog of a drive with axes cannot be switched off
#[test]
fn a_drive_without_a_watchdog_is_refused() {
    let path = six_axis_with("unwatched-axes.toml", "[bus]", "[bus]\nprocess_data_watchdog = \"off\"");
    for command in ["check", "run"] {
        let ran = run(&[command, path.to_str().unwrap()]);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        let refused = "axis \"axis-1\" on \"drive-1\" with process_data_watchdog = \"off\"";
        assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    }
}
