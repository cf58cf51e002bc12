//! Our programs and their tests, linked statically: the guest has no libraries.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds `onbeat`, and `onbeat-measure` beside it, optimised because the guest's CPU is emulated. It has a target folder of its own,
/// because other flags would cause a full rebuild each time.
///
/// # Errors
/// The build failed.
pub(super) fn build(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    command::run(&mut cargo(
        root,
        folder,
        &["build", "--package=onbeat-cli", "--package=onbeat-experiments", "--quiet"],
    ))?;
    Ok(folder.join(TARGET).join("guest/onbeat"))
}

/// Builds one test program of `package` likewise.
///
/// # Errors
/// The build failed.
pub(super) fn build_test(root: &Path, folder: &Path, package: &str, test: &str) -> Result<PathBuf, String> {
    let words =
        ["test", "--package", package, "--test", test, "--no-run", "--quiet", "--message-format=json"];
    let said = command::output(&mut cargo(root, folder, &words))?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|it| {
        (it["target"]["name"] == test).then(|| it["executable"].as_str().map(PathBuf::from))?
    });
    programs.next().ok_or_else(|| format!("cargo names no program for the test {test} of {package}"))
}

fn cargo(root: &Path, folder: &Path, words: &[&str]) -> Command {
    let mut cargo = command::cargo(root, words);
    cargo.args(["--profile=guest", "--target", TARGET]).env("CARGO_TARGET_DIR", folder);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    cargo
}
