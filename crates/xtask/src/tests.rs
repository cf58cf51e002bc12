//! Tests of the workspace, and the second try of tests that a busy machine may have failed.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::command;
use crate::report::{Outcome, Report};
use crate::ros2;

/// Most failed tests that are tried again. Tests that run whole robots need the processor in time,
/// which a shared machine does not always give; more failures than this have another cause.
const TRIED_AGAIN: usize = 24;

/// Tries of a test in all.
const TRIES: usize = 3;

/// Longest wait for a calm machine before another try.
const CALM_WITHIN: Duration = Duration::from_secs(90);

/// Failures listed in the summary; the output has all.
const TOLD: usize = 10;

/// Builds every test of the workspace and of the ROS 2 node.
pub(crate) fn build(root: &Path, report: &mut Report) {
    report.step("build of the tests", || Outcome::of(cargo_test(root, &[]).arg("--no-run")));
    report.step("build of the tests: ros2", || match ros2::prepare(root) {
        Ok(()) => Outcome::of(with_settings(ros2::cargo(root, &["test"]), &[]).arg("--no-run")),
        Err(why) => Outcome::Failed(why),
    });
}

/// Runs them. Failed ones are tried again, one at a time, once the machine is calm; the summary
/// names them as well when they pass then.
pub(crate) fn run_all(root: &Path, report: &mut Report) {
    let folder = Temporary::new();
    run_in("cargo test", &|arguments| cargo_test(root, arguments), &folder.0, report);
    let of_ros2 = |arguments: &[&str]| with_settings(ros2::cargo(root, &["test"]), arguments);
    run_in("cargo test: ros2", &of_ros2, &folder.0, report);
}

/// Runs the tests with names that contain one of `names`.
pub(crate) fn named(root: &Path, names: &[&str], report: &mut Report) {
    let folder = Temporary::new();
    let words: Vec<&str> =
        ["--workspace", "--no-fail-fast", "--"].into_iter().chain(names.iter().copied()).collect();
    let tests =
        |mut tests: Command| run(tests.env("TMPDIR", &folder.0), |line| eprintln!("{line}")).outcome();
    report.step("cargo test", || tests(cargo_test(root, &words)));
    report.step("cargo test: ros2", || match ros2::prepare(root) {
        Ok(()) => tests(with_settings(ros2::cargo(root, &["test"]), &words)),
        Err(why) => Outcome::Failed(why),
    });
}

/// Temporary folder of the tests, which is gone with what they leave there.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("onbeat-tests-{}", process::id()));
        // Where it cannot be made, the first test that needs it says so.
        let made = std::fs::create_dir_all(&folder);
        // As /tmp itself: some tests are of other users.
        let _ = made.and_then(|()| std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)));
        Self(folder)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run_in(name: &str, cargo_test: &dyn Fn(&[&str]) -> Command, temporary: &Path, report: &mut Report) {
    let tests = |arguments: &[&str]| {
        let mut tests = cargo_test(arguments);
        tests.env("TMPDIR", temporary).env(SKIPS, temporary.join("skips"));
        tests
    };
    let mut failures = Failures::default();
    report.step(name, || {
        failures = run(&mut tests(&[]), not_final);
        if failures.may_be_noise() { Outcome::Passed } else { failures.outcome() }
    });
    if let Some(skipped) = skipped(&temporary.join("skips")) {
        report.record("tests that cannot run here", Duration::ZERO, Outcome::Skipped(skipped));
    }
    for number in 2..=TRIES {
        if failures.is_empty() || !failures.may_be_noise() {
            return;
        }
        println!("failed, and tried again:{failures}");
        let name = format!("{name}: try {number} of {}", failures.tests.join(", "));
        report.step(&name, || {
            if !testkit::await_calm(CALM_WITHIN) {
                println!(
                    "the machine is not calm: no second in {CALM_WITHIN:?} without a thread that woke late"
                );
            }
            failures = again(
                &tests,
                &failures,
                if number == TRIES { |line| eprintln!("{line}") } else { not_final },
            );
            if number < TRIES && failures.may_be_noise() { Outcome::Passed } else { failures.outcome() }
        });
    }
}

/// Variable with the file to which tests that cannot run here append a line each (`testkit::skip`).
const SKIPS: &str = "ONBEAT_SKIPS";

/// Number of tests that skipped themselves, and their reasons; none if all ran.
fn skipped(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let tests: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let reasons: BTreeSet<&str> = text.lines().filter_map(|line| Some(line.split_once(": ")?.1)).collect();
    println!("{text}");
    let reasons: Vec<&str> = reasons.into_iter().collect();
    Some(format!("{} tests: {}", tests.len(), reasons.join("; ")))
}

/// Runs the tests that failed, one at a time.
fn again(tests: &dyn Fn(&[&str]) -> Command, failed: &Failures, show_error: fn(&str)) -> Failures {
    let mut again = Failures::default();
    for target in &failed.targets {
        // Built as part of the whole workspace: a package by itself would be built again, with
        // other features.
        let program = target.split(' ').skip_while(|it| !it.starts_with("--"));
        // With `--no-fail-fast` the programs that fail are listed as they are the first time.
        let mut arguments: Vec<&str> =
            ["--workspace", "--no-fail-fast"].into_iter().chain(program).collect();
        arguments.extend(["--", "--exact", "--test-threads=1"]);
        arguments.extend(failed.tests.iter().map(String::as_str));
        again.add(run(&mut tests(&arguments), show_error));
    }
    again
}

/// `cargo test` for these targets, or for the workspace. Property tests use the same cases each
/// time, so that one commit has one outcome; `PROPTEST_RNG_SEED` selects other ones, and a plain
/// `cargo test` uses new ones each time.
fn cargo_test(root: &Path, arguments: &[&str]) -> Command {
    with_settings(command::cargo(root, &["test"]), arguments)
}

/// The same for a `cargo test` of any workspace.
fn with_settings(mut tests: Command, arguments: &[&str]) -> Command {
    if arguments.is_empty() {
        tests.args(["--workspace", "--no-fail-fast"]);
    }
    tests.args(arguments);
    // Tests that start programs of other packages need not build them.
    tests.env("ONBEAT_BUILT", "1");
    // One more than there are cores: most tests wait for their bus.
    let threads = thread::available_parallelism().map_or(2, usize::from) + 1;
    tests.env("RUST_TEST_THREADS", threads.to_string());
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        tests.env("PROPTEST_RNG_SEED", "1");
    }
    tests
}

/// Shows a line of a run with failures that are tried once more: none begins with `error:`, which
/// readers of a long log look for.
fn not_final(line: &str) {
    match line.strip_prefix("error: ") {
        Some(told) => eprintln!("cargo test: {told}"),
        None => eprintln!("{line}"),
    }
}

/// Runs `cargo test` with its output shown.
fn run(tests: &mut Command, show_error: fn(&str)) -> Failures {
    println!("$ {}", command::words(tests));
    let child = tests.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let ended = child.and_then(|mut child| {
        let (output, errors) = (child.stdout.take(), child.stderr.take());
        let errors = thread::spawn(move || Failures::of(errors, show_error));
        let mut failures = Failures::of(output, |line| println!("{line}"));
        failures.add(errors.join().unwrap_or_default());
        Ok((child.wait()?, failures))
    });
    match ended {
        Ok((status, failures)) if status.success() => failures,
        Ok((status, mut failures)) => {
            failures.ended = Some(format!("`{}` ended with {status}", command::words(tests)));
            failures
        }
        Err(error) => Failures {
            ended: Some(format!("`{}` does not run: {error}", command::words(tests))),
            ..Failures::default()
        },
    }
}

/// Failures reported by `cargo test`.
#[derive(Debug, Default)]
struct Failures {
    /// End of `cargo test` itself, when it was not a success.
    ended: Option<String>,
    /// Names of the failed tests.
    tests: Vec<String>,
    /// Arguments that select the test programs which failed, as `cargo` prints them.
    targets: Vec<String>,
    /// Panics, with the first line of their message.
    panics: Vec<String>,
    /// The next line is the message of the last panic.
    message_follows: bool,
}

impl Failures {
    fn of(output: Option<impl Read>, show: impl Fn(&str)) -> Self {
        let mut failures = Self::default();
        let Some(output) = output else { return failures };
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            show(&line);
            failures.read(&line);
        }
        failures
    }

    fn read(&mut self, line: &str) {
        if std::mem::take(&mut self.message_follows)
            && let Some(panic) = self.panics.last_mut()
        {
            panic.push_str(line);
        } else if let Some(test) = line.strip_prefix("test ").and_then(|it| it.strip_suffix(" ... FAILED"))
        {
            self.tests.push(test.to_owned());
        } else if let Some(target) = line.strip_prefix("    `-p ").and_then(|it| it.strip_suffix('`')) {
            self.targets.push(format!("-p {target}"));
        } else if line.starts_with("thread '") && line.contains("panicked at ") {
            self.panics.push(format!("{line} "));
            self.message_follows = true;
        }
    }

    fn add(&mut self, other: Self) {
        self.ended = other.ended.or(self.ended.take());
        self.tests.extend(other.tests);
        self.targets.extend(other.targets);
        self.panics.extend(other.panics);
    }

    fn is_empty(&self) -> bool {
        self.ended.is_none()
    }

    /// True if nothing failed, or a few named tests did in programs that ended by themselves.
    fn may_be_noise(&self) -> bool {
        self.is_empty()
            || ((1..=TRIED_AGAIN).contains(&self.tests.len())
                && (1..=self.tests.len()).contains(&self.targets.len()))
    }

    fn outcome(&self) -> Outcome {
        match &self.ended {
            None => Outcome::Passed,
            Some(ended) => Outcome::Failed(format!("{ended}{self}")),
        }
    }
}

impl Display for Failures {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let tests = self.tests.iter().map(|test| format!("{test} FAILED"));
        let told = tests.take(TOLD).chain(self.panics.iter().take(TOLD).cloned());
        told.into_iter().try_for_each(|failure| write!(out, "\n    {failure}"))
    }
}

/// Builds `onbeat` and `onbeat-ros2` as their tests do, after which nothing is left to build: built
/// alone, their dependencies would have other features.
///
/// # Errors
/// The build failed.
pub(crate) fn build_programs(root: &Path) -> Result<(), String> {
    command::run(&mut command::cargo(root, &["test", "--workspace", "--no-run", "--quiet"]))?;
    ros2::prepare(root)?;
    command::run(&mut ros2::cargo(root, &["test", "--no-run", "--quiet"]))
}

#[cfg(test)]
mod unit {
    use super::Failures;

    fn read(lines: &[&str]) -> Failures {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.read(line));
        failures.ended = Some("cargo ended with 101".to_owned());
        failures
    }

    const ONE_FAILED: [&str; 6] = [
        "test ring::heals ... ok",
        "test ring::breaks ... FAILED",
        "thread 'ring::breaks' (17) panicked at crates/cli/tests/program/ring.rs:9:5:",
        "no event RingOpen",
        "error: 1 target failed:",
        "    `-p onbeat-cli --test program`",
    ];

    /// The summary names the tests that failed and what they said: the end of a log is often all
    /// that is kept.
    #[test]
    fn failed_tests_programs_and_panics_are_found_in_the_output() {
        let failures = read(&ONE_FAILED);
        assert_eq!(failures.tests, ["ring::breaks"]);
        assert_eq!(failures.targets, ["-p onbeat-cli --test program"]);
        let panic = "thread 'ring::breaks' (17) panicked at crates/cli/tests/program/ring.rs:9:5: no event RingOpen";
        assert_eq!(failures.to_string(), format!("\n    ring::breaks FAILED\n    {panic}"));
        assert!(failures.may_be_noise());
    }

    /// A program that ended without a word, one that did not compile, and many failures are no
    /// noise.
    #[test]
    fn a_crash_and_many_failures_are_not_tried_again() {
        assert!(!read(&["    `-p onbeat-cli --test program`"]).may_be_noise());
        assert!(!read(&["error: could not compile `onbeat`"]).may_be_noise());
        let crashed_beside = [&ONE_FAILED[..], &["    `-p onbeat --test door`"]].concat();
        assert!(!read(&crashed_beside).may_be_noise());
        let many = ["test a ... FAILED"; super::TRIED_AGAIN + 1];
        assert!(!read(&[&many[..], &ONE_FAILED[4..]].concat()).may_be_noise());
    }
}
