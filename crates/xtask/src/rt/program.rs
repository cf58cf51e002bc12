//! Our programs and their tests for virtual machines: either as built for the tests of this
//! machine, or built for a virtual machine and linked statically.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::command;

/// Hardware of a virtual machine.
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

/// Copies of the tests' `onbeat` and `onbeat-measure`, without their debug lines, which an emulated
/// machine would have to unpack.
///
/// # Errors
/// The build failed, or the file system's.
pub(super) fn of_tests(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    crate::tests::build_programs(root)?;
    let programs = ["onbeat", "onbeat-measure"].map(|name| root.join("target/debug").join(name));
    let [onbeat, measure] = programs.map(|program| without_lines(&program, folder));
    measure.and(onbeat)
}

/// A copy of the tests' own program `test`, likewise.
///
/// # Errors
/// The build failed, has no such program, or the file system's.
pub(super) fn test_of_tests(root: &Path, folder: &Path, test: &str) -> Result<PathBuf, String> {
    let words = ["test", "--workspace", "--no-run", "--quiet", "--message-format=json"];
    without_lines(&executable(&mut command::cargo(root, &words), test)?, folder)
}

fn without_lines(program: &Path, folder: &Path) -> Result<PathBuf, String> {
    let folder = folder.join("tests");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let copy = folder.join(program.file_name().unwrap_or_default());
    command::output(Command::new("strip").args(["--strip-debug", "-o"]).arg(&copy).arg(program))?;
    Ok(copy)
}

/// Libraries that a program is loaded with; none, if it is linked statically or of another machine.
pub(super) fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = command::output(Command::new("ldd").arg(program)).unwrap_or_default();
    let words =
        listed.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

/// Builds `onbeat` and `onbeat-measure`, optimised because the CPU is emulated. They have a
/// separate target folder, because other flags would cause a full rebuild each time.
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
    executable(&mut cargo(root, folder, target, &words), name)
}

/// Test program of this name in the list of what `cargo` has built.
fn executable(cargo: &mut Command, name: &str) -> Result<PathBuf, String> {
    let said = command::output(cargo)?;
    let messages = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = messages.filter_map(|it| {
        (it["target"]["name"] == name).then(|| it["executable"].as_str().map(PathBuf::from))?
    });
    programs.next().ok_or_else(|| format!("`{}` names no test program {name}", command::words(cargo)))
}

fn cargo(root: &Path, folder: &Path, target: Target, words: &[&str]) -> Command {
    let mut cargo = command::cargo(root, words);
    cargo.args(["--profile=guest", "--target", target.triple]).env("CARGO_TARGET_DIR", folder);
    cargo.env("RUSTFLAGS", target.flags);
    cargo
}
