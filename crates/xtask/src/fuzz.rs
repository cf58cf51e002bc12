//! The fuzz targets, two at a time: one per core of a small machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// What `cargo xtask fuzz` was asked for.
#[derive(Debug)]
pub(crate) struct Options {
    /// How long each target runs, in whole seconds.
    pub(crate) seconds: Duration,
    /// One target, or all.
    pub(crate) target: Option<String>,
}

impl Options {
    /// Reads `[--seconds N] [TARGET]`.
    ///
    /// # Errors
    /// One sentence about what was expected.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { seconds: Duration::from_secs(60), target: None };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            if word == "--seconds" {
                let number =
                    words.next().and_then(|number| number.parse().ok()).filter(|&number: &u64| number > 0);
                let number = number.ok_or("--seconds needs a whole number of seconds, 1 or more")?;
                options.seconds = Duration::from_secs(number);
            } else if word.starts_with('-') || options.target.is_some() {
                return Err(format!("`{word}`: expected [--seconds N] [TARGET]"));
            } else {
                options.target = Some(word.to_owned());
            }
        }
        Ok(options)
    }
}

/// Builds all targets once and runs them, each for its time.
pub(crate) fn all(root: &Path, options: &Options, report: &mut Report) {
    let targets = match targets(root, options.target.as_deref()) {
        Ok(targets) => targets,
        Err(why) => return report.record("fuzz", Duration::ZERO, Outcome::Failed(why)),
    };
    if let Err(why) = setup::cargo_fuzz(root) {
        return report.record("fuzz", Duration::ZERO, Outcome::Skipped(why));
    }
    let mut built = false;
    report.step("fuzz build", || {
        let outcome = Outcome::of(&mut build(root));
        built = matches!(outcome, Outcome::Passed);
        outcome
    });
    if !built {
        return;
    }
    let waiting = Mutex::new(targets);
    let done = Mutex::new(Vec::new());
    let work = || {
        // The lock is held for the pop only: a target runs outside it.
        while let Some(target) = waiting.lock().ok().and_then(|mut waiting| waiting.pop()) {
            let start = Instant::now();
            let outcome = run(root, &target, options.seconds);
            if let Ok(mut done) = done.lock() {
                done.push((target, start.elapsed(), outcome));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    for (target, took, outcome) in done.into_inner().unwrap_or_default() {
        report.record(&format!("fuzz {target}"), took, outcome);
    }
}

/// Names of the targets: the files of `fuzz/fuzz_targets`.
fn targets(root: &Path, wanted: Option<&str>) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let name = |path: PathBuf| Some(path.file_name()?.to_str()?.strip_suffix(".rs")?.to_owned());
    let mut found: Vec<String> = paths.filter_map(name).collect();
    found.sort();
    match wanted {
        None => Ok(found),
        Some(wanted) if found.iter().any(|name| name == wanted) => Ok(vec![wanted.to_owned()]),
        Some(wanted) => Err(format!("no fuzz target `{wanted}`; there are: {}", found.join(", "))),
    }
}

/// Sanitizers need a nightly compiler, or a stable one told that it may.
fn build(root: &Path) -> Command {
    if command::works("rustup", &["run", "nightly", "rustc", "--version"]) {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz", "build"]).current_dir(root);
        return command;
    }
    let mut command = command::cargo(root, &["fuzz", "build"]);
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

/// Runs one built target. `cargo fuzz run` would do the same behind cargo's lock, one at a time.
fn run(root: &Path, target: &str, time: Duration) -> Outcome {
    let folder = root.join("fuzz");
    let program = folder.join("target/x86_64-unknown-linux-gnu/release").join(target);
    let (corpus, artifacts) = (folder.join("corpus").join(target), folder.join("artifacts").join(target));
    for made in [&corpus, &artifacts] {
        if let Err(error) = std::fs::create_dir_all(made) {
            return Outcome::Failed(format!("{}: {error}", made.display()));
        }
    }
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={}", time.as_secs()));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(["-timeout=10", "-print_final_stats=1", "-verbosity=0"]).arg(&corpus);
    let seeds = folder.join("seeds").join(target);
    if seeds.exists() {
        command.arg(seeds);
    }
    Outcome::of(&mut command)
}
