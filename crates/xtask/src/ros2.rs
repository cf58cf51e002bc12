//! The ROS 2 node: a separate workspace, as its DDS library is built with patches of ours.
//!
//! | module | contents |
//! |---|---|
//! | [`library`] | the library: taken from the registry, checked, patched |

mod library;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::command;

/// Places the patched library where the node's manifest expects it, unless it is there.
pub(crate) use library::prepare;

/// Runs `cargo xtask ros2 WORDS`.
///
/// # Errors
/// The words that are expected.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<ExitCode, String> {
    let done = match words {
        [] => start(root, &[]),
        ["run", arguments @ ..] => start(root, arguments),
        ["build", options @ ..] => build(root, options),
        ["test", options @ ..] => test(root, options),
        [other, ..] => return Err(format!("ros2: found `{other}`, expected run, build or test")),
    };
    Ok(done.map_or_else(
        |why| {
            eprintln!("{why}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    ))
}

/// cargo in the node's workspace with its prepared library. It shares the folder of built files
/// with the main workspace, so that `onbeat-ros2` is next to `onbeat`.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Command {
    let mut cargo = command::cargo(&root.join("ros2"), arguments);
    cargo.env("CARGO_TARGET_DIR", root.join("target"));
    cargo
}

/// Builds the node; `options` are cargo's.
///
/// # Errors
/// The library cannot be prepared, or the build failed.
pub(crate) fn build(root: &Path, options: &[&str]) -> Result<(), String> {
    prepare(root)?;
    command::run(cargo(root, &["build"]).args(options))
}

/// Runs the node's tests. They need no other program.
fn test(root: &Path, options: &[&str]) -> Result<(), String> {
    prepare(root)?;
    command::run(cargo(root, &["test"]).args(options))
}

/// Becomes the node, built with optimisation.
fn start(root: &Path, arguments: &[&str]) -> Result<(), String> {
    build(root, &["--release", "--quiet"])?;
    let program = root.join("target/release/onbeat-ros2");
    // Signals go to the node, and its exit status to the caller.
    let error = Command::new(&program).args(arguments).exec();
    Err(format!("{}: {error}", program.display()))
}
