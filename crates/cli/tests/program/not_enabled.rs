//! Axes that are asked to be enabled and are not: named with the reason, and no success.

use crate::common::{Ran, file, run};
use crate::wire::{SIX_AXIS, Wire};

fn json(ran: &Ran) -> serde_json::Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn an_axis_without_main_power_exits_3_and_is_named() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    assert_eq!(wire.onbeat(&["sdo", "write", "3", "0x2f00:3", "false"]).code, Some(0));
    // Main power never comes by itself, so a short run is enough.
    let ran = wire.onbeat(&["run", SIX_AXIS, "--cycles", "300", "--no-ipc", "--json"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let why = "its drive has no main power (statusword bit 4): switch that on";
    assert!(
        ran.stderr.contains(&format!("onbeat: axis \"axis-4\" was not enabled: {why}")),
        "{}",
        ran.stderr
    );
    let end = json(&ran);
    assert!(end["axes"][3]["not_enabled"] == why && end["axes"][2]["not_enabled"].is_null(), "{end}");
    let ran = wire.onbeat(&["run", SIX_AXIS, "--cycles", "300", "--no-ipc"]);
    // Wrapped to the width of a terminal.
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    assert!(words.join(" ").contains(&format!("axis-4: not enabled: {why}")), "{}", ran.stdout);
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn an_axis_without_its_permission_is_3_and_names_the_interlock() {
    let drives = include_str!("../../../../examples/six-axis.toml");
    // The simulated input is low by default.
    let door = "\
[[bus.sub_device]]
name = \"switches\"
simulate = { kind = \"digital_inputs\", channels = 4 }

[[interlock]]
name = \"door\"
kind = \"enable\"
sub_device = \"switches\"
channel = 2
axes = [\"axis-2\"]
";
    let robot = file("not-permitted.toml", &format!("{drives}\n{door}"));
    let ran = run(&["run", robot.to_str().expect("UTF-8"), "--cycles", "300", "--no-ipc", "--json"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    let why = "interlock \"door\" (switches, channel 2) is low";
    assert!(
        ran.stderr.contains(&format!("onbeat: axis \"axis-2\" was not enabled: {why}")),
        "{}",
        ran.stderr
    );
    let end = json(&ran);
    assert!(end["axes"][1]["not_enabled"] == why && end["axes"][0]["not_enabled"].is_null(), "{end}");
}
