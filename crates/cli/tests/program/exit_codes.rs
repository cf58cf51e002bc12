//! The exit codes of `onbeat run`: each says how the run ended, and standard error and the table
//! say why.
//!
//! Command lines that cannot be read: the advice says what was meant, or nothing.

use std::process::Command;
use std::time::Duration;

use testkit::Side;

use crate::common::{
    Ran, Running, await_cycles, file, finished, measure, onbeat, run, shared, six_axis_with,
};
use crate::wire::{SIX_AXIS, Wire};

/// A run on the wire that the machine did not hold up for so long that axes were stopped for that
/// alone.
fn undisturbed(mut run: impl FnMut() -> Ran) -> Ran {
    let mut last = String::new();
    for _ in 0..5 {
        let ran = run();
        if !["(outage)", "this computer stalled"].iter().any(|it| ran.stderr.contains(it)) {
            return ran;
        }
        last = ran.stderr;
        testkit::await_calm(Duration::from_secs(60));
    }
    panic!("the host stalls in every run: {last}");
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn exit_code_is_2_for_usage_errors_and_1_for_refused_runs() {
    assert_eq!(run(&["run", "--cycles", "0"]).code, Some(2));
    assert_eq!(run(&["run", "no-such-robot.toml"]).code, Some(1));
    assert_eq!(run(&["run", "--loss", "100%"]).code, Some(1));
}

#[test]
fn the_help_lists_the_exit_codes() {
    let help = run(&["run", "--help"]).stdout;
    assert!(
        ["0  ", "1  ", "2  ", "3  ", "4  ", "130  "]
            .iter()
            .all(|code| help.contains(&format!("\n  {code}"))),
        "{help}"
    );
}

#[test]
fn a_bus_without_process_data_ends_well() {
    let coupler = "name = \"coupler\"\n[cycle]\nperiod = \"2ms\"\n[[bus.sub_device]]\nname = \"a\"\n\
                   identity = { vendor_id = 2, product_code = 0x044c2c52 }\n\
                   simulate = { kind = \"coupler\" }\n";
    let path = file("coupler.toml", coupler);
    let ran = run(&["run", path.to_str().unwrap(), "--cycles", "100", "--no-ipc", "--profile", "none"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains("SubDevice 0"), "{}", ran.stderr);
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn an_axis_that_supervision_stopped_is_3_and_says_why() {
    let close =
        "following_error = { window = 1e-6, time = \"2ms\" }\nsub_device = \"drive-{}\"\nmode = \"csp\"";
    let robot = six_axis_with("close-follower.toml", "sub_device = \"drive-{}\"\nmode = \"csp\"", close);
    let ran =
        undisturbed(|| run(&["run", robot.to_str().unwrap(), "--cycles", "800", "--json", "--no-ipc"]));
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("supervision stopped axis \"axis-1\": "), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert!(end["axes"][0]["stop"].is_string() && end["axes"][4]["stop"].is_null(), "{end}");
    let first = &end["findings"][0];
    let said = format!("onbeat: {}", first["sentence"].as_str().expect("a sentence"));
    assert!(first["code"] == 3 && ran.stderr.contains(&said), "{end}{}", ran.stderr);
    assert_eq!(end["sub_devices"][5]["state"], "Op", "{end}");
    let sync0 = &end["sub_devices"][5]["sync0"];
    assert_eq!((&sync0["cycle_ns"], &sync0["shift_ns"]), (&1_000_000.into(), &100_000.into()), "{end}");
    assert!(sync0["frame_phase_ns"].as_u64().is_some_and(|phase| phase < 1_000_000), "{end}");
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn a_drive_that_is_in_fault_from_the_start_is_named_and_3() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let ran = undisturbed(|| {
        assert_eq!(wire.onbeat(&["sdo", "write", "2", "0x2f00:2", "0x7500"]).code, Some(0));
        wire.onbeat(&["run", SIX_AXIS, "--cycles", "1500", "--no-ipc"])
    });
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("SubDevice 2 \"drive-3\" is in fault: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("onbeat: axis \"axis-3\" ended in Fault: "), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("0x7500") && ran.stdout.contains("axis-3: "),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    // When, in which cycle.
    let line = ran.stderr.lines().find(|line| line.contains("is in fault")).expect("the line");
    let (when, rest) = line.split_once(' ').expect("a time");
    assert!(when.len() == "2026-11-21T22:43:33.123Z".len() && when.ends_with('Z'), "{line}");
    assert!(rest.starts_with("cycle "), "{line}");
}

// feature(program): what happens has UTC, cycle, place and cause; a drive in fault or without main power is named; a lost bus says for how long
#[test]
fn a_drive_without_main_power_is_named() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    assert_eq!(wire.onbeat(&["sdo", "write", "3", "0x2f00:3", "false"]).code, Some(0));
    let ran = undisturbed(|| wire.onbeat(&["run", SIX_AXIS, "--cycles", "3000", "--no-ipc"]));
    let expected = "axis \"axis-4\" at SubDevice 3 \"drive-4\" remains in Ready to switch on: its drive has no main power";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let expected = "onbeat: axis \"axis-4\" was not enabled: its drive has no main power";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

// feature(program): a bus that dies
// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn a_dead_bus_exits_4_and_names_missing_sub_devices() {
    let Some(mut wire) = Wire::with(SIX_AXIS) else { return };
    let mut run = onbeat();
    run.args(["run", "--cycles", "3000", "--no-ipc", "--iface", Side::Near.interface()]);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    // More than it takes to Op, and a second before the end.
    await_cycles(running.id(), 1500);
    wire.simulator.kill().expect("kill");
    let ran = running.finish();
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no process data of all 6 SubDevices"), "{}", ran.stderr);
    assert!(ran.stderr.contains("SubDevice 0 \"drive-1\" did not answer in the last "), "{}", ran.stderr);
    assert!(ran.stderr.contains("not all SubDevices exchange process data: "), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("no answer") && !ran.stdout.contains("Operation enabled"),
        "{}",
        ran.stdout
    );
}

// feature(program): a bus that dies
#[test]
fn a_bus_that_stays_lost_ends_the_run_and_is_4() {
    let Some(mut wire) = Wire::with(SIX_AXIS) else { return };
    let robot =
        six_axis_with("short-loss.toml", "period = \"1ms\"", "period = \"1ms\"\nloss_time = \"300ms\"");
    let mut run = onbeat();
    run.args(["run", robot.to_str().unwrap(), "--no-ipc", "--json", "--iface", Side::Near.interface()]);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    await_cycles(running.id(), 1500);
    wire.simulator.kill().expect("kill");
    let ran = running.finish();
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("the bus ended lost; check power and cables"), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert_eq!(end["sub_devices"][5]["answers"], false, "{end}");
    assert_eq!(end["axes"][5]["state"], "no answer", "{end}");
    // The bus and each of its SubDevices, also the ones that standard error only names.
    let findings = end["findings"].as_array().expect("a list");
    assert_eq!(findings.iter().filter(|it| it["code"] == 4).count(), 7, "{end}");
    let named = "onbeat: nor did 3 more end well: SubDevice 3 \"drive-4\", SubDevice 4 ";
    assert!(ran.stderr.contains(named), "{}", ran.stderr);
}

// feature(program): what happens has UTC, cycle, place and cause; a drive in fault or without main power is named; a lost bus says for how long
#[test]
fn a_bus_that_is_lost_and_back_says_for_how_long() {
    let Some(wire) = Wire::with(SIX_AXIS) else { return };
    let mut run = onbeat();
    run.args(["run", "--cycles", "4000", "--no-ipc", "--iface", Side::Near.interface()]);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    await_cycles(running.id(), 1500);
    let simulator = rustix::process::Pid::from_child(&wire.simulator);
    let signal = |signal| rustix::process::kill_process(simulator, signal).expect("a signal");
    signal(rustix::process::Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    signal(rustix::process::Signal::CONT);
    let ran = running.finish();
    // The drives' watchdogs have taken them out of Op: they are back there, in fault.
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("no process data of all 6 SubDevices"), "{}", ran.stderr);
    let out = ran.stderr.lines().find(|line| line.contains("SubDevice 5 \"drive-6\" is in SafeOp + error"));
    let out = out.unwrap_or_else(|| panic!("{}", ran.stderr));
    let (_, told) = out.split_once("SyncManager watchdog expired; ").expect("for how long");
    let cycles: u64 = told.split(' ').next().and_then(|it| it.parse().ok()).expect("cycles");
    assert!(cycles >= 300 && told.ends_with("without process data before"), "{out}");
    assert!(ran.stderr.contains("SubDevice 0 \"drive-1\" is in Op again"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("expected Op"), "{}", ran.stderr);
}

// feature(program): `loss_time = "wait"`
#[test]
fn lost_time_of_the_robot_file_outlasts_the_default() {
    let text = include_str!("../../../../examples/six-axis.toml");
    let waits = text.replace("period = \"1ms\"", "period = \"5ms\"\nloss_time = \"wait\"");
    // Drives that stay in Op meanwhile.
    let waits = waits.replace("device = \"servo\"", "device = \"servo\"\nprocess_data_watchdog = \"2min\"");
    let robot = file("waits.toml", &waits);
    let robot = robot.to_str().expect("UTF-8");
    let Some(wire) = Wire::with(robot) else { return };
    let mut run = onbeat();
    run.args(["run", robot, "--no-ipc", "--json", "--iface", Side::Near.interface()]);
    let running = Running::start(wire.testbed.run_in(Side::Near, run));
    await_cycles(running.id(), 400);
    // Frames are lost on an unplugged cable. The default ends a run after 10 s.
    let far = wire.testbed.namespace(Side::Far);
    let set = |state: &str| {
        let ip = ["-n", &far, "link", "set", Side::Far.interface(), state];
        assert!(Command::new("ip").args(ip).status().expect("ip").success());
    };
    set("down");
    std::thread::sleep(Duration::from_millis(11_500));
    set("up");
    std::thread::sleep(Duration::from_secs(2));
    let process = rustix::process::Pid::from_raw(running.id() as i32).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it goes on");
    let ran = running.finish();
    let again = ran
        .stderr
        .lines()
        .find(|line| line.contains("process data again of all 6 SubDevices, behind the cable "));
    let again = again.unwrap_or_else(|| panic!("{}", ran.stderr));
    let seconds =
        again.rsplit_once(", ").and_then(|(_, it)| it.strip_suffix(" s")).and_then(|it| it.parse().ok());
    assert!(seconds.is_some_and(|it: f64| it > 10.5), "{again}");
    assert!(!ran.stderr.contains("ended lost"), "{}", ran.stderr);
    let end: serde_json::Value = serde_json::from_str(&ran.stdout).expect("the numbers");
    assert!(
        end["sub_devices"].as_array().is_some_and(|it| it.iter().all(|it| it["answers"] == true)),
        "{end}"
    );
}

// feature(program): exit codes, from one verdict for program and fault matrix
#[test]
fn a_failed_bring_up_names_the_sub_device_and_exits_4() {
    let script = file("refused-op.txt", "0s state refuse drive-6 Op 0x1b\n");
    let mut command = onbeat();
    command.args(["run", SIX_AXIS, "--no-ipc", "--json", "--faults"]).arg(script);
    let _shared = shared();
    let running = Running::start(command);
    // It is given up after 9 s.
    std::thread::sleep(Duration::from_secs(3));
    let process = rustix::process::Pid::from_raw(running.id() as i32).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it goes on");
    let ran = running.finish();
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("\"drive-6\"") && ran.stderr.contains("0x001b"), "{}", ran.stderr);
}

fn refused(mut command: Command, arguments: &[&str]) -> Ran {
    command.args(arguments);
    let ran = finished(command);
    assert_eq!(ran.code, Some(2), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
    ran
}

// feature(program): a robot file is the argument of every command but `sdo`; one in the wrong place gets an error with the right place
#[test]
fn a_misplaced_robot_file_is_reported_with_the_right_place() {
    let robot = "examples/six-axis.toml";
    for command in [&["run"][..], &["scan"], &["simulate", "--iface", "lo"]] {
        let ran = refused(onbeat(), &[command, &["--robot", robot]].concat());
        assert!(
            ran.stderr.contains("tip: the robot file of this command is given without --robot"),
            "{}",
            ran.stderr
        );
    }
    let ran = refused(measure(), &["servo", "--robot", robot]);
    assert!(ran.stderr.contains("is given without --robot"), "{}", ran.stderr);
    // It takes none.
    let ran = refused(onbeat(), &["events", "--robot", robot]);
    assert!(!ran.stderr.contains("is given without"), "{}", ran.stderr);
    for command in [&["sdo", "read", robot, "0", "0x1018:1"][..], &["sdo", "list", robot]] {
        let ran = refused(onbeat(), command);
        assert!(ran.stderr.contains("a robot file is given as --robot ROBOT.toml"), "{}", ran.stderr);
    }
}

// feature(program): the error of a mistyped word lists near words only
#[test]
fn of_a_few_letters_only_near_words_are_suggested() {
    for (words, near) in [
        (&["topp"][..], "'top'"),
        (&["ru"], "'run'"),
        (&["scn"], "'scan'"),
        (&["io", "gett"], "'get'"),
        (&["run", "--fo", "1s"], "'--for'"),
    ] {
        let ran = refused(onbeat(), words);
        assert!(ran.stderr.contains("similar") && ran.stderr.contains(near), "{words:?}: {}", ran.stderr);
    }
    for words in [&["ot"][..], &["u"], &["en"], &["run", "--ih"], &["run", "--x"], &["run", "--am"]] {
        let ran = refused(onbeat(), words);
        let other = ["similar", "--with-parent", "--explain", "--frame-order"]
            .iter()
            .any(|it| ran.stderr.contains(it));
        assert!(!other && ran.stderr.contains("--help"), "{words:?}: {}", ran.stderr);
    }
}

/// A command that no page names is not found by its users.
#[test]
fn every_command_is_named_on_a_page() {
    let help = finished({
        let mut command = onbeat();
        command.arg("--help");
        command
    });
    let listed = help.stdout.split_once("Commands:\n").expect("commands").1.lines();
    let names: Vec<&str> = listed
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split_once(' '))
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && *name != "help")
        .collect();
    assert!(names.len() > 15, "{names:?}");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let pages: String = std::fs::read_dir(docs)
        .expect("docs")
        .flatten()
        .filter(|entry| entry.path().extension().is_some_and(|it| it == "md"))
        .map(|entry| std::fs::read_to_string(entry.path()).expect("a page"))
        .collect();
    let missing: Vec<_> = names.iter().filter(|name| !pages.contains(&format!("onbeat {name}"))).collect();
    assert!(missing.is_empty(), "on no page of docs/: {missing:?}");
}
