//! Signals, standard output and standard error belong to the program.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use onbeat::{Controller, CycleInfo, Error, Io, Robot};
use rustix::io::ioctl_fionbio;

fn robot() -> Robot {
    let six_axis = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/six-axis.toml");
    Robot::load(six_axis).unwrap().without_ipc().cycles(300)
}

/// Signals that this process catches, as the kernel reports them.
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

/// Output of a test of this file in a separate process, without its name and time.
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

// feature(library): another thread reports a controller's panic: neither standard error nor a backtrace delays its axes
#[test]
fn a_controller_that_panics_is_not_held_up_by_standard_error() {
    let (_never_read, write) = std::io::pipe().unwrap();
    ioctl_fionbio(&write, true).unwrap();
    let mut full = write.try_clone().unwrap();
    let error = std::iter::repeat_with(|| full.write(&[0; 4096])).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    ioctl_fionbio(&write, false).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "a_panic", "--ignored", "--nocapture"]).env("RUST_BACKTRACE", "1");
    let mut child = child.stdout(Stdio::null()).stderr(write).spawn().unwrap();
    let begin = Instant::now();
    let ended = loop {
        match child.try_wait().unwrap() {
            None if begin.elapsed() < Duration::from_secs(60) => thread::sleep(Duration::from_millis(10)),
            ended => break ended,
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ended.expect("the run is held up").success());
}

/// Panics in its hundredth cycle.
struct Panics(u64);

impl Controller for Panics {
    fn update(&mut self, _: CycleInfo, _: &mut Io<'_>) {
        self.0 += 1;
        assert!(self.0 < 100, "out of its depth");
    }
}

#[test]
#[ignore = "started by a_controller_that_panics_is_not_held_up_by_standard_error"]
fn a_panic() {
    let error = robot().run(Panics(0)).map(drop).unwrap_err();
    let Error::ControllerPanicked { message } = error else { panic!("{error}") };
    assert_eq!(message, "out of its depth");
}
