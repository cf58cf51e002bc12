//! Proofs of the lock-free code of `ipc` by Miri and ThreadSanitizer; loom's models are among its tests.
//!
//! Each step has a target folder of its own, so that the other builds are kept.

use std::path::Path;
use std::process::Command;

use crate::command;
use crate::report::{Outcome, Report};

/// Runs both.
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

/// Components of the nightly toolchain.
const COMPONENTS: [&str; 2] = ["miri", "rust-src"];

/// Runs the code without system calls under several schedules: the cell, the records of a channel, states
/// and commands in words.
fn miri(root: &Path) -> Outcome {
    let tests = ["--lib", "--", "cell::", "channel::record", "state::words", "command::words"];
    let mut command = on_nightly(root, &["miri", "test", "-p", PACKAGE]);
    command.args(tests).env("MIRIFLAGS", "-Zmiri-many-seeds=0..4");
    Outcome::of(command.env("CARGO_TARGET_DIR", "target/miri"))
}

/// Runs all of it, with the server's thread and clients as threads of one process. The standard library is
/// rebuilt, because its synchronisation counts too.
fn thread_sanitizer(root: &Path) -> Command {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = on_nightly(root, &["test", "-Zbuild-std", "--target", &target, "-p", PACKAGE]);
    command
        .args(["--lib", "--test", "channel", "--test", "clients"])
        // Its own memory is mapped by the threads that it watches.
        .args(["--", "--skip", "a_send_makes_no_system_call"])
        .env("RUSTFLAGS", "-Zsanitizer=thread")
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
