//! Our programs and their tests, linked statically: the guest has no libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;

/// Machine of a guest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    triple: &'static str,
    flags: &'static str,
}

/// This machine's programs, without its libraries.
pub(super) const AMD64: Target =
    Target { triple: "x86_64-unknown-linux-gnu", flags: "-C target-feature=+crt-static" };
/// rustc brings the linker and the C library.
pub(super) const ARM64: Target =
    Target { triple: "aarch64-unknown-linux-musl", flags: "-C linker=rust-lld" };

/// Builds `onbeat`, and `onbeat-measure` beside it, optimised because the guest's CPU is emulated. It has a target folder of its own,
/// because other flags would cause a full rebuild each time.
///
/// # Errors
/// The build failed.
pub(super) fn build(root: &Path, folder: &Path, target: Target) -> Result<PathBuf, String> {
    let words = ["build", "--package=onbeat-cli", "--package=onbeat-experiments", "--quiet"];
    command::run(&mut cargo(root, folder, target, &words))?;
    Ok(folder.join(target.triple).join("guest/onbeat"))
}

/// Builds one test program of `package` likewise, for this machine or another.
///
/// # Errors
/// The build failed.
pub(super) fn build_test(
    root: &Path,
    folder: &Path,
    target: Target,
    package: &str,
    test: &str,
) -> Result<PathBuf, String> {
    test_program(root, folder, target, &["--package", package, "--test", test], test)
}

/// Builds the unit tests of `package` for another machine.
///
/// # Errors
/// The build failed.
pub(super) fn build_unit_tests(
    root: &Path,
    folder: &Path,
    target: Target,
    package: &str,
) -> Result<PathBuf, String> {
    test_program(root, folder, target, &["--package", package, "--lib"], &package.replace('-', "_"))
}

fn test_program(
    root: &Path,
    folder: &Path,
    target: Target,
    which: &[&str],
    name: &str,
) -> Result<PathBuf, String> {
    let words = [&["test", "--no-run", "--quiet", "--message-format=json"], which].concat();
    let said = command::output(&mut cargo(root, folder, target, &words))?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|it| {
        (it["target"]["name"] == name).then(|| it["executable"].as_str().map(PathBuf::from))?
    });
    programs.next().ok_or_else(|| format!("cargo names no test program {name}: {}", which.join(" ")))
}

fn cargo(root: &Path, folder: &Path, target: Target, words: &[&str]) -> Command {
    let mut cargo = command::cargo(root, words);
    cargo.args(["--profile=guest", "--target", target.triple]).env("CARGO_TARGET_DIR", folder);
    cargo.env("RUSTFLAGS", target.flags);
    cargo
}
