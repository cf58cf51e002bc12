//! Our program, linked statically: the guest has no libraries.

use std::path::{Path, PathBuf};

use crate::command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Builds it, optimised: the guest's CPU is emulated. It has a target folder of its own, as other flags would have
/// everything built anew each time.
///
/// # Errors
/// That it does not build.
pub(super) fn build(root: &Path, folder: &Path) -> Result<PathBuf, String> {
    let mut cargo = command::cargo(root, &["build", "--package=onbeat", "--quiet", "--profile=guest"]);
    cargo.args(["--target", TARGET]).env("CARGO_TARGET_DIR", folder);
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static");
    command::run(&mut cargo)?;
    Ok(folder.join(TARGET).join("guest/onbeat"))
}
