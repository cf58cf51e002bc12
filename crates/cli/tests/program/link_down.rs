//! An interface that goes down, loses its carrier, or is deleted under a run: the report says when,
//! where, why and what to do.
//!
//! Ways to the interface's frames: `--link`.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testkit::Side;

use crate::common::{Ran, Running, await_cycles, finished, number, onbeat, six_axis_with, undisturbed};
use crate::wire::{SIX_AXIS, Wire};

/// Cycles that take longer than it takes to Op.
const IN_OP: u64 = 2500;

fn ip(wire: &Wire, side: Side, arguments: &[&str]) {
    let mut command = Command::new("ip");
    let status = command.args(["-n", &wire.testbed.namespace(side), "link"]).args(arguments).status();
    assert!(status.expect("ip").success(), "{arguments:?}");
}

fn set(wire: &Wire, side: Side, state: &str) {
    ip(wire, side, &["set", side.interface(), state]);
}

/// A run, to which this happens once it is in Op, and which ends with this code.
fn run(wire: &Wire, arguments: &[&str], code: i32, happens: impl FnOnce(u32)) -> Ran {
    let mut run = onbeat();
    run.arg("run").args(arguments).args(["--no-ipc", "--json", "--iface", Side::Near.interface()]);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    await_cycles(running.id(), IN_OP);
    happens(running.id());
    let ran = running.finish();
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// Runs the scenario with each link that has a network interface.
fn by_every_link(play: impl Fn(&Wire, &str)) {
    for link in ["packet", "xdp"] {
        let Some(wire) = Wire::with(SIX_AXIS) else { return };
        if !lacks(&wire, link) {
            play(&wire, link);
        }
    }
}

/// The same with a robot that gives a lost bus 300 ms.
fn run_to_the_loss(wire: &Wire, link: &str, happens: impl FnOnce(u32)) -> Ran {
    let robot =
        six_axis_with("down-loss.toml", "period = \"1ms\"", "period = \"1ms\"\nloss_time = \"300ms\"");
    run(wire, &[robot.to_str().expect("UTF-8"), "--link", link], 4, happens)
}

/// The line with these words, which begins with its time and its cycle.
fn line<'a>(ran: &'a Ran, words: &str) -> &'a str {
    let line = ran.stderr.lines().find(|line| line.contains(words) && line.contains("Z cycle "));
    line.unwrap_or_else(|| panic!("no line with {words:?}: {}", ran.stderr))
}

fn link_errors(ran: &Ran) -> u64 {
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    number(&end["frames"], "link_errors")
}

const ALL_LOST: &str = "no process data of all 6 SubDevices, behind the cable between interface near and SubDevice 0 \"drive-1\" port 0: ";

const DOWN: &str = "interface near: it is down; bring it up with `sudo ip link set near up`";

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn a_downed_interface_is_reported_with_remedy_and_duration() {
    by_every_link(|wire, link| {
        let ran = run(wire, &[SIX_AXIS, "--cycles", "7000", "--link", link], 3, |_| {
            set(wire, Side::Near, "down");
            std::thread::sleep(Duration::from_millis(600));
            set(wire, Side::Near, "up");
        });
        line(&ran, DOWN);
        let lost = line(&ran, ALL_LOST);
        assert!(lost.ends_with(DOWN), "{lost}");
        let again = line(&ran, "interface near: it takes frames again after ");
        let (_, cycles) = again.split_once("again after ").expect("how many");
        let cycles: u64 = cycles.split(' ').next().and_then(|it| it.parse().ok()).expect("cycles");
        assert!(cycles > 100 && link_errors(&ran) >= cycles, "{cycles} {}", link_errors(&ran));
        // The outage ended: the SubDevices are back, their drives in fault.
        line(&ran, "SubDevice 5 \"drive-6\" is in Op again");
        assert!(!ran.stderr.contains("expected Op"), "{}", ran.stderr);
        assert!(ran.stderr.contains("ended in Fault: 0x7500"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("onbeat: the bus ended lost"), "{}", ran.stderr);
    });
}

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn an_interface_that_stays_down_ends_the_run_and_is_named() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let ran = run_to_the_loss(&wire, "packet", |_| set(&wire, Side::Near, "down"));
    line(&ran, DOWN);
    let sentence = ran.stderr.lines().find(|line| line.contains("the bus ended lost after "));
    assert!(sentence.is_some_and(|sentence| sentence.ends_with(DOWN)), "{}", ran.stderr);
    assert!(link_errors(&ran) > 100, "{}", ran.stdout);
    assert!(!ran.stderr.contains("check power and cables"), "{}", ran.stderr);
}

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn a_cable_without_carrier_is_named() {
    by_every_link(|wire, link| {
        let ran = run_to_the_loss(wire, link, |_| set(wire, Side::Far, "down"));
        let lost = line(&ran, ALL_LOST);
        assert!(lost.contains("interface near: no carrier; plug the cable"), "{lost}");
        let sentence = ran.stderr.lines().find(|line| line.contains("the bus ended lost after "));
        assert!(sentence.is_some_and(|it| it.contains(": interface near: no carrier; ")), "{}", ran.stderr);
    });
}

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn a_renamed_interface_is_reported_by_its_new_name() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let ran = run_to_the_loss(&wire, "packet", |_| {
        // Older kernels rename only what is down.
        for arguments in [["near", "down", "name", "later"].as_slice(), &["later", "up"]] {
            ip(&wire, Side::Near, &[&["set"], arguments].concat());
        }
        set(&wire, Side::Far, "down");
    });
    line(&ran, "interface later: no carrier; plug the cable");
    let sentence = ran.stderr.lines().find(|line| line.contains("the bus ended lost after "));
    assert!(sentence.is_some_and(|it| it.contains(": interface later: no carrier; ")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("it was removed"), "{}", ran.stderr);
}

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn a_deleted_interface_ends_the_run_and_is_named() {
    by_every_link(|wire, link| {
        // A lost bus would be given 10 s.
        let ran = run(wire, &[SIX_AXIS, "--link", link], 4, |_| ip(wire, Side::Near, &["delete", "near"]));
        line(&ran, "interface near: it was removed; ");
        let sentence = ran.stderr.lines().find(|line| line.starts_with("onbeat: the bus ended lost "));
        let sentence = sentence.unwrap_or_else(|| panic!("{}", ran.stderr));
        assert!(
            sentence.ends_with("interface near: it was removed; plug it in again, or name another"),
            "{sentence}"
        );
        let unit = sentence.split_once("after ").and_then(|(_, after)| after.split(' ').nth(1));
        assert!(unit.is_none_or(|unit| unit != "s"), "{sentence}");
    });
}

// feature(program): an interface that is down, without carrier, renamed or deleted, and SubDevices that left Op, are reported as the cause
#[test]
fn drives_that_left_op_are_reported_without_blaming_cables() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    // They are left where they fell.
    let clocks = "distributed_clocks = true";
    let robot = six_axis_with("left-op.toml", clocks, &format!("{clocks}\nrecovery = false"));
    let robot = robot.to_str().expect("UTF-8");
    let ran = run(&wire, &[robot, "--cycles", "5000"], 4, |process| {
        // Their watchdogs expire meanwhile.
        let process = Pid::from_raw(process as i32).expect("a process");
        kill_process(process, Signal::STOP).expect("a signal");
        std::thread::sleep(Duration::from_millis(500));
        kill_process(process, Signal::CONT).expect("a signal");
    });
    let lost = line(&ran, ALL_LOST);
    let why = "left Op for SafeOp + error, AL status code 0x001b: SyncManager watchdog expired";
    assert!(lost.contains(why), "{lost}");
    assert!(!ran.stderr.contains("is in Op again"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("check power and cables"), "{}", ran.stderr);
}

/// True where the kernel or this process has no such link; all others scan the bus by it.
pub(crate) fn lacks(wire: &Wire, kind: &str) -> bool {
    let scan = wire.onbeat(&["scan", "--link", kind]);
    let lack = ["has no AF_XDP", "AF_XDP needs the capabilities", "lets no program poll a driver"];
    if lack.iter().any(|lack| scan.stderr.contains(lack)) {
        testkit::skip!("{}", scan.stderr);
        return true;
    }
    assert!(scan.code == Some(0) && scan.stdout.contains("drive-6"), "{} {}", scan.stdout, scan.stderr);
    false
}

// feature(program): `--link` packet, xdp, xdp-polled, auto
#[test]
fn six_axes_run_by_every_kind_of_link() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    for (kind, told) in [
        ("packet", ""),
        ("xdp", "interface near: AF_XDP, in the driver, copied, 1 queue\n"),
        ("xdp-polled", "interface near: AF_XDP, in the driver, copied, polled, 1 queue\n"),
        ("auto", "interface near: AF_XDP, in the driver, copied, 1 queue\n"),
    ] {
        if lacks(&wire, kind) {
            continue;
        }
        let mut stderr = String::new();
        let end = undisturbed(|| {
            let ran = wire.onbeat(&["run", SIX_AXIS, "--cycles", "500", "--json", "--link", kind]);
            stderr.clone_from(&ran.stderr);
            ran
        });
        assert_eq!(end["cycles"], 500, "{kind}: {end}");
        assert_eq!(end["working_counter_errors"], 0, "{kind}: {end}");
        let way = told.trim().strip_prefix("interface near: ").unwrap_or("AF_PACKET");
        assert_eq!(end["conditions"]["link"], format!("near ({way})"), "{kind}");
        assert!(stderr.contains(told) && stderr.contains("AF_XDP") != told.is_empty(), "{kind}: {stderr}");
    }
}

#[test]
fn a_link_that_means_nothing_is_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let mut command = onbeat();
        command.args(["scan"]).args(arguments);
        let ran = finished(command);
        assert!(ran.code == Some(2) && ran.stderr.contains(part), "{:?} {}", ran.code, ran.stderr);
    };
    refused(&["--link", "xdp"], "--iface");
    refused(&["--iface", "lo", "--link", "fast"], "[possible values: packet, xdp, xdp-polled, auto]");
}
