//! Watchdogs: reported by `onbeat scan -v`, and a warning of `onbeat run` for outputs without one.

use crate::common::{file, run, six_axis_with};

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
