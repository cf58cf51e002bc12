//! A bus has one MainDevice: others are refused before they send a frame, and noticed when they are
//! there all the same.

use std::process::{Command, Stdio};

use testkit::Side;

use crate::common::{Ran, Running, SIMULATED, await_cycles, finished, number, onbeat, undisturbed};
use crate::wire::Wire;

const SIX_AXIS: &str = "examples/six-axis.toml";

/// Cycles after which the bus is in Op.
const TO_OP: u64 = 1500;

// feature(running-bus): `scan`, `sdo`, `io` and `events` on an interface that a cycle has attach to it
// feature(program): an interface has one owner among processes of all users and network namespaces, none after it was killed
#[test]
fn commands_use_the_running_cycle_or_name_its_owner() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let end = undisturbed(|| {
        let running = start(&wire, "near", &["--cycles", "6000", "--json"]);
        let expected = format!(
            "onbeat: interface near: process {} of user 0 (onbeat run, robot \"six-axis\") has it; end that, or attach to \
             its IPC: `onbeat top`",
            running.id()
        );
        for arguments in [&["run", "--cycles", "10", "--no-ipc"][..], &["scan", "--take-over"]] {
            assert_eq!(wire.onbeat(arguments).sentence(), expected, "{arguments:?}");
        }
        let asked = format!("(process {}), which continues", running.id());
        let through = |ran: Ran, part: &str| {
            assert!(ran.code == Some(0) && ran.stderr.contains(&asked), "{:?} {}", ran.code, ran.stderr);
            assert!(ran.stdout.contains(part), "{}", ran.stdout);
        };
        through(wire.onbeat(&["scan"]), "drive-6");
        through(wire.onbeat(&["new"]), "name = \"drive-{}\"\ncount = 6\n");
        through(wire.onbeat(&["sdo", "read", "0", "0x1018:1"]), "4294904577");
        through(as_nobody(&wire, &["scan"]), "drive-6");
        through(wire.onbeat(&["io", "list"]), "drive-6.");
        through(wire.onbeat(&["events"]), "phase Op");
        through(as_nobody(&wire, &["events", "--json"]), "\"phase\":\"Op\"");
        // Without the interface the command uses another bus, and says so.
        let own = near(&wire, &["sdo", "write", "drive-1", "0x2F00:1", "10"]);
        assert!(own.code == Some(0) && own.stderr.starts_with(SIMULATED), "{:?} {}", own.code, own.stderr);
        assert!(
            own.stderr.contains("; --cycle six-axis uses the bus of the running cycle"),
            "{}",
            own.stderr
        );
        running.finish()
    });
    let axes = end["axes"].as_array().expect("axes");
    assert!(axes.iter().all(|axis| axis["state"] == "Operation enabled"), "{end}");
    assert_eq!(end["working_counter_errors"], 0);
    assert_eq!(end["frames"]["other_main_device"], 0);
    let without_one = "onbeat: interface near: found no process, expected a running cycle that lets this user in; \
         `onbeat events --kept ROBOT` prints kept events";
    assert_eq!(wire.onbeat(&["events"]).sentence(), without_one);
}

// feature(program): an interface has one owner among processes of all users and network namespaces, none after it was killed
#[test]
fn the_lock_ends_with_its_process_and_leftovers_are_free() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    for _ in 0..3 {
        let running = start(&wire, "near", &["--no-ipc"]);
        let mut kill = Command::new("kill");
        kill.args(["-KILL", &running.id().to_string()]);
        assert!(kill.status().expect("kill").success());
        assert_eq!(running.finish().code, None);
        assert_eq!(wire.onbeat(&["scan", "--json"]).json().as_array().map(Vec::len), Some(6));
    }
}

// feature(program): an interface has one owner among processes of all users and network namespaces, none after it was killed
#[test]
fn two_interfaces_have_two_owners() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let far = wire.testbed.namespace(Side::Far);
    shell(
        &wire,
        &format!("ip link add near2 type veth peer name far2 netns {far} && ip link set near2 up"),
    );
    let mut up = Command::new("ip");
    up.args(["link", "set", "far2", "up"]);
    assert!(wire.testbed.run_in(Side::Far, up).status().expect("ip").success());
    let mut simulate = onbeat();
    simulate.args(["simulate", SIX_AXIS, "--iface", "far2"]).stdout(Stdio::null());
    let _second = Running::start(wire.testbed.run_in(Side::Far, simulate));
    let running = start(&wire, "near", &["--cycles", "4000", "--no-ipc"]);
    // The simulator needs a moment to open its interface.
    let scan = || near(&wire, &["scan", "--json", "--iface", "near2"]);
    let found = (0..20).map(|_| scan()).find(|scan| scan.code == Some(0)).expect("an answer");
    assert_eq!(found.json().as_array().map(Vec::len), Some(6));
    let ran = near(&wire, &["run", SIX_AXIS, "--cycles", "100", "--no-ipc", "--iface", "near2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = running.finish();
    assert!(!ran.stderr.contains("MainDevice"), "{}", ran.stderr);
}

// feature(program): another MainDevice is detected before the first frame; `--take-over`; reported in Op
#[test]
fn a_second_port_is_detected_and_used_only_on_request() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    // A switch: each MainDevice receives the SubDevices' replies to both.
    shell(
        &wire,
        "ip link add switch type bridge && ip link set switch up && ip link set near master switch && \
         for port in left right; do \
             ip link add $port type veth peer name switch-$port && ip link set switch-$port master switch && \
             ip link set switch-$port up && ip link set $port up || exit 1; \
         done",
    );
    let running = start(&wire, "left", &["--cycles", "8000", "--json", "--no-ipc"]);
    for arguments in [
        &["scan", "--iface", "right"][..],
        &["sdo", "read", "0", "0x1018:1", "--iface", "right"],
        &["run", "--cycles", "10", "--no-ipc", "--iface", "right"],
    ] {
        let refused = near(&wire, arguments);
        let sentence = refused.sentence();
        assert!(sentence.starts_with("onbeat: another MainDevice is on this wire: "), "{sentence}");
        assert!(sentence.contains(" from 12:10:10:10:10:10; end it, or "), "{sentence}");
    }
    let taken = near(&wire, &["scan", "--json", "--take-over", "--iface", "right"]);
    assert_eq!(taken.json().as_array().map(Vec::len), Some(6), "{}", taken.stderr);
    assert!(taken.stderr.contains(OTHER), "{}", taken.stderr);
    let ran = running.finish();
    assert_eq!(ran.stderr.matches(OTHER).count(), 1, "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert!(number(&end["frames"], "other_main_device") >= 10, "{end}");
}

const OTHER: &str =
    "another MainDevice, source 12:10:10:10:10:10, is on this wire: 10 frames that are not ours";

/// A run of six axes on this interface, in Op.
fn start(wire: &Wire, interface: &str, arguments: &[&str]) -> Running {
    let mut run = onbeat();
    run.args(["run", SIX_AXIS, "--iface", interface]).args(arguments);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    await_cycles(running.id(), TO_OP);
    running
}

fn near(wire: &Wire, arguments: &[&str]) -> Ran {
    let mut command = onbeat();
    command.args(arguments);
    finished(wire.testbed.run_in(Side::Near, command))
}

/// The same as a user with the right to open raw sockets and no other, as with `setcap`.
fn as_nobody(wire: &Wire, arguments: &[&str]) -> Ran {
    let onbeat = onbeat();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_raw"]);
    command.args(["--ambient-caps=+net_raw"]).arg(onbeat.get_program()).args(arguments);
    command.args(["--iface", "near"]).current_dir("/");
    finished(wire.testbed.run_in(Side::Near, command))
}

fn shell(wire: &Wire, script: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]);
    let ran = finished(wire.testbed.run_in(Side::Near, shell));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
