//! Options of the cycle: profile, overrun policy, and what is put back.
//!
//! Axes that are asked to be enabled and are not: named with the reason, and no success.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Ran, alone, file, onbeat, run, run_alone, six_axis_with, slept};
use crate::wire::{SIX_AXIS, Wire};

// feature(hold): P, M, C and S: each requested alone, granted or refused with a reason, restored
#[test]
fn each_letter_is_switched_by_name_and_listed_in_json() {
    for (arguments, asked) in [
        (&["--profile", "none"][..], "none"),
        (&["--profile", "M", "--priority", "40"], "M"),
        (&["--profile", "S", "--spin-margin", "80us"], "S"),
        (&["--priority", "40"], "PM"),
        (&["--spin-margin", "20us"], "PMS"),
    ] {
        let end = run_alone(&[&["run", "--cycles", "50", "--json"], arguments].concat()).json();
        let profile = &end["profile"];
        assert_eq!(profile["requested"], asked, "{arguments:?}");
        let refused = profile["refusals"].as_array().unwrap().len();
        let granted = profile["granted"].as_str().unwrap().replace("none", "");
        assert_eq!(granted.len() + refused, asked.replace("none", "").len(), "{profile}");
        if granted.contains('S') {
            assert!(profile["spin_margin_ns"].as_u64().unwrap() >= 20_000, "{profile}");
        }
        assert_eq!(end["conditions"]["profile"]["requested"], asked);
        assert_eq!(end["overrun"]["policy"], "skip");
    }
}

#[test]
fn the_table_names_the_profile() {
    let ran = run_alone(&["run", "--cycles", "50", "--profile", "S"]);
    let line = "\nprofile      S: SCHED_OTHER, any CPU, memory not locked\n";
    assert!(ran.stdout.contains(line), "{}", ran.stdout);
}

#[test]
fn a_profile_of_other_letters_is_refused() {
    for letters in ["X", "PP", ""] {
        let output = onbeat().args(["run", "--profile", letters, "--cycles", "1"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("expected letters of PMCS, each once"), "{said}");
    }
}

/// The whole program is stopped for a while, so that a cycle is late whatever the machine does.
#[test]
fn an_overrun_ends_the_run_if_it_is_to() {
    let _alone = alone();
    let mut command = onbeat();
    command.args(["run", "--profile", "none", "--for", "30s", "--overrun", "stop", "--time", "host"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
    let number = child.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &number]).status().expect("kill");
    // More cycles than bring-up takes; a busy machine may have caused an overrun before.
    while child.try_wait().expect("status").is_none()
        && slept(child.id()).is_none_or(|cycles| cycles < 1_000)
    {
        thread::sleep(Duration::from_millis(10));
    }
    signal("-STOP");
    // Many cycles, and less than the SyncManager watchdogs of the drives (100 ms).
    thread::sleep(Duration::from_millis(30));
    signal("-CONT");
    let output = child.wait_with_output().expect("output");
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // Its axes had no process data for as long, or the machine slept on until a watchdog expired:
    // of several codes the highest counts.
    assert!(matches!(output.status.code(), Some(1 | 3 | 4)), "{out}{said}");
    let overran =
        |line: &str| line.starts_with("onbeat: cycle ") && line.contains("ran past the next release");
    assert!(said.lines().any(overran), "{said}");
    assert!(out.contains("stopped by an overrun   in cycle "), "{out}");
    assert!(out.contains("T_exec"), "the table is there all the same: {out}");
}

#[test]
fn overrun_policies_have_the_same_names_in_the_robot_file() {
    for name in ["skip", "catch-up", "stop"] {
        let file = format!("overrun-{name}.toml");
        let path = six_axis_with(&file, "overrun = \"skip\"", &format!("overrun = \"{name}\""));
        assert_eq!(run_alone(&["scan", path.to_str().unwrap()]).code, Some(0));
    }
    let path = six_axis_with("overrun-wrong.toml", "overrun = \"skip\"", "overrun = \"ignore\"");
    let ran = run_alone(&["scan", path.to_str().unwrap()]);
    assert!(ran.sentence().contains("expected one of skip, catch-up, stop"), "{}", ran.stderr);
}

/// Script of a shell in separate namespaces, with a separate `/run`.
const SHIELDED: &str = r#"
masks() { for task in /proc/$1/task/*; do echo "$2 $(cat $task/comm)=$(sed -n 's/Cpus_allowed_list:.//p' $task/status)"; done; }
journals() { ls /run/onbeat 2>/dev/null | grep -c journal; }
masks $$ before
cat /proc/irq/*/smp_affinity_list >/run/before

"$1" run --profile PMCS --for 60s --time host --json >/run/killed 2>&1 & run=$!
for try in $(seq 400); do grep -q claim /run/onbeat/*.journal 2>/dev/null && break; sleep 0.05; done
for try in $(seq 400); do masks $run running >/run/masks; grep -q "cycle=$2$" /run/masks && break; sleep 0.05; done
sleep 0.3
masks $run running
kill -KILL $run; wait $run 2>/dev/null
echo "left $(journals)"
"$1" doctor 2>&1 >/dev/null | grep '^shield of CPU .* left behind by process .* `onbeat doctor --restore`'
echo "left $(journals)"
"$1" run --profile none --cycles 20 2>&1 >/dev/null | tr '\r' '\n' | grep -a 'put back first'
masks $$ after
cat /proc/irq/*/smp_affinity_list | cmp - /run/before && echo interrupts as before

"$1" run --profile PMCS --for 60s >/run/stopped 2>&1 & run=$!
for try in $(seq 400); do grep -q claim /run/onbeat/*.journal 2>/dev/null && break; sleep 0.05; done
sleep 1
kill -INT $run; wait $run
echo "at the end $(journals)"
masks $$ after
cat /proc/irq/*/smp_affinity_list | cmp - /run/before && echo interrupts as before
"$1" doctor --restore
"#;

// feature(hold): everything undone at the end, after Ctrl-C, and after a kill
#[test]
fn a_shield_isolates_the_cycle_and_is_always_restored() {
    let last = thread::available_parallelism().map_or(1, usize::from) - 1;
    let cpu = last.to_string();
    let program = env!("CARGO_BIN_EXE_onbeat");
    let arguments = ["sh", "-c", SHIELDED, "sh", program, &cpu].map(OsStr::new);
    let put_back = |journals: &Path| drop(machine::journal::restore_in(journals, true));
    let output = match testkit::alone(&arguments, ("LC_ALL", "C"), put_back) {
        Ok(output) => output,
        Err(skip) => return testkit::skip!("{skip}"),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let text = format!("{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines = |start: &str| said.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>();
    let running = lines("running ");
    assert!(running.contains(&format!("running cycle={cpu}").as_str()), "{text}");
    assert!(running.iter().any(|line| line.starts_with("running segment=")), "{text}");
    let elsewhere = |line: &&str| {
        let cpus = line.rsplit('=').next().unwrap_or_default();
        !line.starts_with("running cycle=")
            && cpus.parse::<machine::cpus::Cpus>().is_ok_and(|cpus| cpus.contains(last))
    };
    assert_eq!(running.iter().find(|line| elsewhere(line)), None, "{text}");
    // The doctor reports it, and changes nothing.
    assert_eq!(lines("left "), ["left 1", "left 1"], "{text}");
    assert_eq!(lines("shield of CPU").len(), 1, "{text}");
    assert_eq!(lines("put back first: shield of CPU").len(), 1, "{text}");
    assert_eq!(lines("at the end "), ["at the end 0"], "{text}");
    let before = lines("before ").iter().map(|line| line.replace("before", "after")).collect::<Vec<_>>();
    assert_eq!(lines("after "), [before.clone(), before].concat(), "{text}");
    assert_eq!(lines("interrupts as before").len(), 2, "{text}");
}

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
