//! Outcomes of steps, and the closing line.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// Outcome of a step.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The step succeeded.
    Passed,
    /// The step failed; with the findings.
    Failed(String),
    /// The step could not run; with the missing part.
    Skipped(String),
}

impl Outcome {
    /// Runs `command` with its output shown; exit code zero is a pass.
    pub(crate) fn of(command: &mut Command) -> Self {
        match crate::command::run(command) {
            Ok(()) => Self::Passed,
            Err(error) => Self::Failed(error),
        }
    }
}

/// Duration and outcome of work parallel to a step, for [`Report::record`].
pub(crate) fn timed(work: impl FnOnce() -> Outcome) -> (Duration, Outcome) {
    let start = Instant::now();
    let outcome = work();
    (start.elapsed(), outcome)
}

/// Outcomes of one `cargo xtask` command.
#[derive(Debug, Default)]
pub(crate) struct Report {
    steps: Vec<(String, Duration, Outcome)>,
}

impl Report {
    /// Runs one step, announced by name.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Outcome) {
        println!("\n=== {name}");
        let (took, outcome) = timed(work);
        self.record(name, took, outcome);
    }

    /// Records a step that ran elsewhere, such as parallel to another one.
    pub(crate) fn record(&mut self, name: &str, took: Duration, outcome: Outcome) {
        match &outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => println!("error: {name} FAILED: {why}"),
            Outcome::Skipped(why) => println!("{name} skipped: {why}"),
        }
        self.steps.push((name.to_owned(), took, outcome));
    }

    /// Appends the steps of another report; their outcomes are printed already.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.steps.append(&mut other.steps);
    }

    /// Prints one line per step and the closing line; fails if any step failed.
    pub(crate) fn close(self) -> ExitCode {
        let [mut passed, mut failed, mut skipped] = [0; 3];
        println!("\n=== summary");
        for (name, took, outcome) in &self.steps {
            let (word, why) = match outcome {
                Outcome::Passed => (counted(&mut passed, "passed"), ""),
                Outcome::Failed(why) => (counted(&mut failed, "FAILED"), why.as_str()),
                Outcome::Skipped(why) => (counted(&mut skipped, "skipped"), why.as_str()),
            };
            println!("{word:7} {:7.1} s  {name}  {why}", took.as_secs_f64());
        }
        println!("\n{passed} passed, {failed} failed, {skipped} skipped");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn counted(count: &mut u32, word: &'static str) -> &'static str {
    *count += 1;
    word
}
