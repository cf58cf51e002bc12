//! Proofs of the lock-free code of `ipc` by Miri and ThreadSanitizer, and long runs of the
//! examples. The loom models of `ipc` are among its tests.
//!
//! Miri and ThreadSanitizer have separate target folders, so that the other builds are kept.

use std::path::Path;
use std::process::Command;

use crate::command;
use crate::report::{Outcome, Report};

/// Runs both of the lock-free code.
pub(crate) fn all(root: &Path, report: &mut Report) {
    match nightly(&COMPONENTS) {
        Ok(()) => {
            report.step("Miri: undefined behaviour, weak memory", || miri(root));
            report.step("ThreadSanitizer: data races", || Outcome::of(&mut thread_sanitizer(root)));
        }
        Err(why) => {
            for name in ["Miri", "ThreadSanitizer"] {
                report.step(name, || Outcome::Skipped(why.clone()));
            }
        }
    }
}

/// Runs what takes too long for `cargo xtask test`.
pub(crate) fn long_runs(root: &Path, report: &mut Report) {
    report.step("Examples: a minute with load and stalls", || {
        let test = "examples_ride_out_stalls_and_load_for_a_minute";
        let mut command = Command::new(env!("CARGO"));
        command.args(["test", "--release", "-p", "onbeat-cli", "--test", "program", test]);
        Outcome::of(command.args(["--", "--ignored"]).current_dir(root))
    });
    // Ten times as many as in the tests, and other ones.
    report.step("Limits: 10^8 hostile set-points", || {
        let mut tests = command::cargo(root, &["test", "-p", "onbeat-motion", "--test", "main", "hostile"]);
        Outcome::of(tests.env("ONBEAT_SET_POINTS", "100000000").env("ONBEAT_SEED", "2"))
    });
}

/// Components of the nightly toolchain.
const COMPONENTS: [&str; 2] = ["miri", "rust-src"];

/// Runs the code without system calls: the cell, the records of a channel, states and commands in
/// words. What has two threads runs under several schedules, the rest has only one.
fn miri(root: &Path) -> Outcome {
    let run = |flags: &str, tests: &[&str]| {
        let mut command = on_nightly(root, &["miri", "test", "-p", PACKAGE, "--lib", "--"]);
        command.args(tests).env("MIRIFLAGS", flags);
        command::run(command.env("CARGO_TARGET_DIR", "target/miri"))
    };
    let others = [&WITHOUT_SYSTEM_CALLS[..], &["--skip", WITH_THREADS, "--skip", WITH_A_FILE]].concat();
    let ran = run("", &others).and_then(|()| run("-Zmiri-many-seeds=0..4", &[WITH_THREADS]));
    ran.map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Modules and tests that Miri can run.
const WITHOUT_SYSTEM_CALLS: [&str; 6] =
    ["cell::", "channel::record", "command::tests", "controller::words", "state::region", LEASES_END];

/// Test of a module with other tests that take Miri too long.
const LEASES_END: &str = "memory_that_the_cycle_has_left_goes_back_to_the_door";

/// Test among them that makes system calls after all.
const WITH_A_FILE: &str = "states_are_read_in_order_and_overwritten_ones_skipped";

/// Test among them with a thread for each end.
const WITH_THREADS: &str = "readers_never_see_two_publications_in_one";

/// Test that decodes for most of the time that ThreadSanitizer would take, in one thread.
const ONE_THREAD: &str = "whatever_the_bytes_there_is_a_message_or_an_error";

/// Test of memory mapped by the watched threads; ThreadSanitizer's memory would count, too.
const WATCHED: &str = "a_send_makes_no_system_call_or_wakes_by_one_at_choice";

/// Runs all of it, with the server's thread and clients as threads of one process. The standard
/// library is rebuilt, because its synchronisation counts too.
fn thread_sanitizer(root: &Path) -> Command {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = on_nightly(root, &["test", "-Zbuild-std", "--target", &target, "-p", PACKAGE]);
    command
        .args(["--lib", "--test", "channel", "--test", "clients"])
        .args(["--", "--skip", WATCHED, "--skip", ONE_THREAD])
        .env("RUSTFLAGS", "-Zsanitizer=thread --cfg sanitized")
        .env("CARGO_TARGET_DIR", "target/tsan");
    command
}

fn on_nightly(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).args(arguments).current_dir(root);
    // Set by the cargo that runs this process, and meant for another one.
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTUP_TOOLCHAIN");
    command
}

/// Ensures a nightly toolchain with these components.
///
/// # Errors
/// The toolchain cannot be installed.
fn nightly(components: &[&str]) -> Result<(), String> {
    if !command::works("rustup", &["--version"]) {
        return Err("needs rustup, for a nightly toolchain (https://rustup.rs)".into());
    }
    let listed = || {
        let mut list = Command::new("rustup");
        command::output(list.args(["component", "list", "--installed", "--toolchain", "nightly"]))
    };
    let lacking = |listed: &str| {
        let has = |name: &&&str| !listed.lines().any(|line| line.starts_with(**name));
        components.iter().filter(has).copied().collect::<Vec<_>>()
    };
    let missing = listed().map_or(components.to_vec(), |listed| lacking(&listed));
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing {} for the nightly toolchain (rustup)", missing.join(", "));
    let mut add = Command::new("rustup");
    add.args(["component", "add", "--toolchain", "nightly"]).args(components);
    // An installed toolchain is not updated.
    let added = command::run(&mut add).or_else(|_| {
        let mut install = Command::new("rustup");
        install.args(["toolchain", "install", "nightly", "--profile", "minimal", "--no-self-update"]);
        for name in components {
            install.args(["--component", name]);
        }
        command::run(&mut install)
    });
    added.map_err(|why| format!("no nightly toolchain with {}: {why}", missing.join(", ")))
}

const PACKAGE: &str = "onbeat-ipc";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() { sources(&path, found) } else { found.push(path) }
        }
    }

    /// A wrong name would be no error of the test program, and no proof.
    #[test]
    fn what_is_run_and_skipped_is_there() {
        let package = crate::workspace_root().join("crates/ipc");
        let mut files = Vec::new();
        ["src", "tests"].iter().for_each(|folder| sources(&package.join(folder), &mut files));
        let texts: Vec<String> = files.iter().map(|it| fs::read_to_string(it).expect("a text")).collect();
        let names = [WITH_A_FILE, WITH_THREADS, ONE_THREAD, WATCHED];
        for name in WITHOUT_SYSTEM_CALLS.into_iter().chain(names) {
            let module = package
                .join("src")
                .join(name.trim_end_matches("::").replace("::", "/"))
                .with_extension("rs");
            let is_test = texts.iter().any(|text| text.contains(&format!("fn {name}(")));
            assert!(is_test || files.contains(&module), "{name}");
        }
    }
}
