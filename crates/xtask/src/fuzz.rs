//! Fuzz targets: each runs over its kept inputs, then for some time with generated ones. Two run at
//! a time, one per core of a small machine.
//!
//! The kept inputs of a target are one archive, `fuzz/seeds/TARGET.tar`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Options of `cargo xtask fuzz`.
#[derive(Debug)]
pub(crate) struct Options {
    /// Run time of each target, in whole seconds.
    pub(crate) seconds: Duration,
    /// Target to run, or `None` for all.
    pub(crate) target: Option<String>,
    /// Inputs to keep for the target; then nothing runs.
    pub(crate) keep: Vec<PathBuf>,
}

impl Options {
    /// Parses `[--seconds N] [TARGET]` or `--keep TARGET FILE...`.
    ///
    /// # Errors
    /// The expected arguments, in one sentence.
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self { seconds: Duration::from_secs(60), target: None, keep: Vec::new() };
        if let ["--keep", target, files @ ..] = words {
            if files.is_empty() {
                return Err("--keep: expected TARGET FILE...".to_owned());
            }
            options.target = Some((*target).to_owned());
            options.keep = files.iter().map(PathBuf::from).collect();
            return Ok(options);
        }
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

/// Builds all targets once, then runs them.
pub(crate) fn all(root: &Path, options: &Options, report: &mut Report) {
    if let (Some(target), false) = (&options.target, options.keep.is_empty()) {
        let kept = targets(root, Some(target)).and_then(|_| keep(root, target, &options.keep));
        return report.step("fuzz keep", || kept.map_or_else(Outcome::Failed, |()| Outcome::Passed));
    }
    let targets = prepare(root, options.target.as_deref(), report);
    test(root, targets, options.seconds, report);
}

/// Builds all targets, and returns the names of the selected ones.
pub(crate) fn prepare(root: &Path, wanted: Option<&str>, report: &mut Report) -> Vec<String> {
    let targets = match targets(root, wanted) {
        Ok(targets) => targets,
        Err(why) => {
            report.record("fuzz", Duration::ZERO, Outcome::Failed(why));
            return Vec::new();
        }
    };
    let mut is_built = false;
    report.step("fuzz build", || {
        let outcome = build(root);
        is_built = matches!(outcome, Outcome::Passed);
        outcome
    });
    if is_built { targets } else { Vec::new() }
}

/// Runs targets that are built, each for `time`.
pub(crate) fn test(root: &Path, targets: Vec<String>, time: Duration, report: &mut Report) {
    if targets.is_empty() {
        return;
    }
    report.step("fuzz corpora", || regression(root, &targets));
    let waiting = Mutex::new(targets);
    let done = Mutex::new(Vec::new());
    let work = || {
        // The lock is held for the pop only: a target runs outside it.
        while let Some(target) = waiting.lock().ok().and_then(|mut waiting| waiting.pop()) {
            let start = Instant::now();
            let outcome = run(root, &target, time);
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

/// Names of the targets: the files of `fuzz/fuzz_targets`, and its folders.
fn targets(root: &Path, wanted: Option<&str>) -> Result<Vec<String>, String> {
    let folder = root.join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let name = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let folder = path.join("main.rs").exists().then_some(name);
        name.strip_suffix(".rs").or(folder).map(str::to_owned)
    };
    let mut found: Vec<String> = paths.filter_map(name).collect();
    found.sort();
    match wanted {
        None => Ok(found),
        Some(wanted) if found.iter().any(|name| name == wanted) => Ok(vec![wanted.to_owned()]),
        Some(wanted) => Err(format!("no fuzz target `{wanted}`; there are: {}", found.join(", "))),
    }
}

/// Installs cargo-fuzz and builds all targets, unless they are there.
fn build(root: &Path) -> Outcome {
    if let Err(why) = setup::cargo_fuzz(root) {
        return Outcome::Skipped(why);
    }
    // A third of the time to build is the sanitizer's, and it finds nothing in safe code.
    let only = ["--no-default-features", "--features"];
    let safe = ["--sanitizer", "none", only[0], only[1], "safe"];
    let frames = ["--sanitizer", "none", "--no-trace-compares", only[0], only[1], "frames"];
    let with_unsafe_code = [only[0], only[1], "shared-memory"];
    let builds: [&[&str]; 3] = [&safe, &frames, &with_unsafe_code];
    let built = builds.map(|options| command::run(&mut cargo_fuzz_build(root, options)));
    match built.into_iter().collect::<Result<(), String>>() {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Failed(why),
    }
}

/// `cargo fuzz build`. Sanitizers need a nightly compiler, or a stable one with unstable features
/// allowed.
fn cargo_fuzz_build(root: &Path, options: &[&str]) -> Command {
    if command::works("rustup", &["run", "nightly", "rustc", "--version"]) {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz", "build"]).args(options).current_dir(root);
        return command;
    }
    let mut command = command::cargo(root, &["fuzz", "build"]);
    command.args(options).env("RUSTC_BOOTSTRAP", "1");
    command
}

/// Runs every kept input once: fixed bugs stay fixed.
fn regression(root: &Path, targets: &[String]) -> Outcome {
    for target in targets {
        let mut command = match built(root, target) {
            Ok(command) => command,
            Err(why) => return Outcome::Failed(why),
        };
        let ran = unpacked(root, target)
            .and_then(|seeds| command::run(command.args(["-runs=0", "-verbosity=0"]).arg(seeds)));
        if let Err(why) = ran {
            return Outcome::Failed(why);
        }
    }
    Outcome::Passed
}

/// Runs one built target with generated inputs. `cargo fuzz run` would hold cargo's lock, one at a
/// time.
fn run(root: &Path, target: &str, time: Duration) -> Outcome {
    let corpus = root.join("fuzz/corpus").join(target);
    let made = std::fs::create_dir_all(&corpus).map_err(|error| format!("{}: {error}", corpus.display()));
    let prepared = made.and_then(|()| Ok((built(root, target)?, unpacked(root, target)?)));
    let (mut command, seeds) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return Outcome::Failed(why),
    };
    command.arg(format!("-max_total_time={}", time.as_secs()));
    let dictionary = root.join("fuzz/dictionaries").join(format!("{target}.dict"));
    if dictionary.exists() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    command.args(["-print_final_stats=1", "-verbosity=0"]).arg(&corpus).arg(seeds);
    Outcome::of(&mut command)
}

/// Built target that saves failing inputs below `fuzz/artifacts`.
fn built(root: &Path, target: &str) -> Result<Command, String> {
    let folder = root.join("fuzz");
    let artifacts = folder.join("artifacts").join(target);
    std::fs::create_dir_all(&artifacts).map_err(|error| format!("{}: {error}", artifacts.display()))?;
    let program = folder.join("target/x86_64-unknown-linux-gnu/release").join(target);
    let mut command = if target.starts_with(WITH_UNSAFE_CODE) {
        let mut sanitized = Command::new(program);
        sanitized.env("ASAN_OPTIONS", QUARANTINE).arg(NO_LEAKS_PER_INPUT);
        sanitized
    } else {
        // An allocation beyond it fails, which ends the target; a sanitizer needs more address
        // space, and has a separate limit.
        let mut limited = Command::new("prlimit");
        limited.arg(format!("--as={MEMORY}")).arg(program);
        limited
    };
    command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-timeout=10");
    Ok(command)
}

/// Prefix of the targets over code that is not all safe, which are built with a sanitizer.
const WITH_UNSAFE_CODE: &str = "ipc_";

/// libFuzzer takes allocations of the server's threads for leaks and searches all memory after such
/// an input, which took half the time. AddressSanitizer still reports leaks, at the end of the run.
const NO_LEAKS_PER_INPUT: &str = "-detect_leaks=0";

/// Memory that AddressSanitizer keeps back to find uses after free, and after return: the memory of
/// a hundred inputs. With the defaults, 256 MB and 2^20, most of it is in no cache of the
/// processor.
const QUARANTINE: &str = "quarantine_size_mb=16:max_uar_stack_size_log=16";

/// Bytes of address space of the other targets: libFuzzer's own limit of what is in memory at once.
const MEMORY: u64 = 2 << 30;

/// Archive of the kept inputs.
fn archive(root: &Path, target: &str) -> PathBuf {
    root.join("fuzz/seeds").join(format!("{target}.tar"))
}

/// Folder with the kept inputs, out of their archive.
fn unpacked(root: &Path, target: &str) -> Result<PathBuf, String> {
    let folder = root.join("target/fuzz-seeds").join(target);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut tar = Command::new("tar");
    tar.arg("-xf").arg(archive(root, target)).arg("-C").arg(&folder);
    command::run(&mut tar).map(|()| folder)
}

/// Adds inputs to the archive of a target. The same inputs make the same archive.
fn keep(root: &Path, target: &str, files: &[PathBuf]) -> Result<(), String> {
    let folder = unpacked(root, target)?;
    for file in files {
        let name = file.file_name().ok_or_else(|| format!("{}: expected a file", file.display()))?;
        std::fs::copy(file, folder.join(name)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner", "--mode=0644"]);
    tar.arg("--format=ustar").arg("-cf").arg(archive(root, target)).arg("-C").arg(&folder);
    // By name: the folder itself would be an entry, too.
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    names.sort();
    command::run(tar.arg("--").args(names))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inputs of one target: more are merged.
    const MOST_KEPT: usize = 150;

    #[test]
    fn every_target_is_built_and_has_inputs_that_are_kept() {
        let root = crate::workspace_root();
        let names = targets(&root, None).expect("the folder of targets");
        let manifest = std::fs::read_to_string(root.join("fuzz/Cargo.toml")).expect("its manifest");
        for name in names {
            let mut tables = manifest.split("\n\n");
            let table = tables.find(|table| table.contains(&format!("name = \"{name}\"\n")));
            let table = table.unwrap_or_else(|| panic!("{name} is not in fuzz/Cargo.toml"));
            let builds: &[&str] =
                if name.starts_with(WITH_UNSAFE_CODE) { &["shared-memory"] } else { &["safe", "frames"] };
            let is_of = |build: &&str| table.contains(&format!("required-features = [\"{build}\"]"));
            assert!(
                builds.iter().any(is_of),
                "{name} is in none of the builds {builds:?} of fuzz/Cargo.toml"
            );
            let listed = command::output(Command::new("tar").arg("-tf").arg(archive(&root, &name)));
            let kept = listed.map_or(0, |listed| listed.lines().count());
            assert!((1..=MOST_KEPT).contains(&kept), "{name} has {kept} files in its archive");
        }
    }
}
