//! Signals, standard output and standard error belong to the program.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::process::Command;

use onbeat::{Controller, CycleInfo, Io, Robot};

fn robot() -> Robot {
    let six_axis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml");
    Robot::load(six_axis).unwrap().without_ipc().cycles(300)
}

/// Signals that this process catches, as the kernel tells them.
fn caught() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let masks = status.lines().filter(|line| line.starts_with("SigCgt") || line.starts_with("SigIgn"));
    masks.collect::<Vec<_>>().join(" ")
}

/// Compares the signals that are caught in every hundredth cycle.
struct Looks {
    before: String,
    cycles: u64,
}

impl Controller for Looks {
    fn update(&mut self, _: CycleInfo, _: &mut Io<'_>) {
        self.cycles += 1;
        if self.cycles % 100 == 0 {
            assert_eq!(caught(), self.before);
        }
    }
}

// feature(library): no signal handler, and nothing on standard output or standard error
#[test]
fn no_signal_is_caught_during_a_run_or_after_it() {
    let before = caught();
    robot().run(Looks { before: before.clone(), cycles: 0 }).unwrap();
    assert_eq!(caught(), before);
}

/// Output of a test of this file in a process of its own, but for its name and time.
fn printed(test: &str) -> (String, String) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test, "--ignored", "--nocapture"]).output().unwrap();
    assert!(output.status.success());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(test, "TEST");
    let stdout = text(&output.stdout);
    let stdout = stdout.split("; finished").next().unwrap_or_default().to_owned();
    (stdout, text(&output.stderr))
}

// feature(library): no signal handler, and nothing on standard output or standard error
#[test]
fn a_run_prints_nothing() {
    assert_eq!(printed("a_run"), printed("nothing"));
    assert_eq!(printed("a_run").1, "");
}

#[test]
#[ignore = "started by a_run_prints_nothing"]
fn a_run() {
    struct Still;
    impl Controller for Still {}
    robot().run(Still).unwrap();
}

#[test]
#[ignore = "started by a_run_prints_nothing"]
fn nothing() {}
