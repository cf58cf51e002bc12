//! A program that a test started ends with the test, and a test with its `cargo`.
//!
//! A testbed carries frames between its sides, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use testkit::{Side, Testbed, end_with_parent};

/// A killed `cargo test` can clean up no more than a killed test: programs under SCHED_FIFO would
/// run on.
#[test]
fn programs_of_a_test_end_with_cargo() {
    let mut cargo = in_a_role("as_cargo");
    let said = BufReader::new(cargo.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let processes = said.filter_map(|line| line.split_once("process ")?.1.parse().ok()).take(2);
    let processes: Vec<u32> = processes.collect();
    assert_eq!(processes.len(), 2, "the test, and the program it started");
    assert!(processes.iter().all(|&process| runs(process)));
    cargo.kill().expect("SIGKILL");
    cargo.wait().expect("its end");
    let killed = Instant::now();
    while processes.iter().any(|&process| runs(process)) {
        assert!(killed.elapsed() < Duration::from_secs(30), "{processes:?} run on");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
#[ignore = "a part of the test above: the process that is killed"]
fn as_cargo() {
    std::fs::write("/proc/self/comm", "cargo").expect("a name");
    let _ = in_a_role("as_test").wait();
}

#[test]
#[ignore = "a part of the test above: the test that `cargo` runs"]
fn as_test() {
    let mut sleeper = Command::new("sleep");
    let mut sleeper = end_with_parent(sleeper.arg("60")).spawn().expect("sleep");
    println!("process {}\nprocess {}", std::process::id(), sleeper.id());
    let _ = sleeper.wait();
}

fn in_a_role(role: &str) -> Child {
    let mut this = Command::new(std::env::current_exe().expect("this program"));
    this.args(["--exact", role, "--ignored", "--nocapture"]);
    let piped = if role == "as_cargo" { Stdio::piped() } else { Stdio::inherit() };
    this.stdin(Stdio::null()).stdout(piped).spawn().expect("this program once more")
}

/// True if the process runs: one that has ended may stay for a while, for its parent to ask for its
/// exit code.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn testbed() -> Option<Testbed> {
    Testbed::new().map_err(|skip| testkit::skip!("{skip}")).ok()
}

fn interfaces(testbed: &Testbed, side: Side) -> String {
    let mut command = Command::new("ip");
    command.args(["-oneline", "link"]);
    let output = testbed.run_in(side, command).output().expect("ip runs");
    String::from_utf8(output.stdout).expect("ip prints text")
}

#[test]
fn each_side_holds_its_own_interface_and_the_cable_is_up() {
    let Some(testbed) = testbed() else { return };
    for (side, other) in [(Side::Near, "far@"), (Side::Far, "near@")] {
        let found = interfaces(&testbed, side);
        assert!(found.contains(&format!("{}@", side.interface())), "{found}");
        assert!(!found.contains(other), "{found}");
        assert!(found.contains("state UP"), "{found}");
    }
}

#[test]
fn a_closure_inside_a_side_sees_that_side_alone() {
    let Some(testbed) = testbed() else { return };
    let devices = || std::fs::read_to_string("/proc/thread-self/net/dev").expect("procfs is there");
    assert!(testbed.inside(Side::Near, devices).contains("near:"));
    assert!(testbed.inside(Side::Far, devices).contains("far:"));
    assert!(!devices().contains("near:"), "the calling thread stays where it was");
}

#[test]
fn a_dropped_testbed_takes_its_namespaces_along() {
    let Some(testbed) = testbed() else { return };
    let names = [Side::Near, Side::Far].map(|side| Path::new("/run/netns").join(testbed.namespace(side)));
    assert!(names.iter().all(|name| name.exists()));
    drop(testbed);
    assert!(names.iter().all(|name| !name.exists()));
}

#[test]
fn what_a_killed_process_left_behind_is_swept() {
    let Some(_first) = testbed() else { return };
    let mut short_lived = Command::new("true").spawn().expect("true runs");
    let left = format!("onbeat-{}-0-near", short_lived.id());
    short_lived.wait().expect("true ends");
    let added = Command::new("ip").args(["netns", "add", &left]).status().expect("ip runs");
    assert!(added.success());
    let _second = testbed();
    assert!(!Path::new("/run/netns").join(&left).exists());
}
