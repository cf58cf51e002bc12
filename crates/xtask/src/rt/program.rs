//! Our program and the culprit, linked statically: the guest has no libraries.

use std::path::{Path, PathBuf};

use crate::command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is built for the guest.
#[derive(Debug)]
pub(super) struct Programs {
    /// The program people use.
    pub(super) onbeat: PathBuf,
    /// A process that takes a CPU at random instants, and says when.
    pub(super) culprit: PathBuf,
}

impl Programs {
    /// Their sizes.
    pub(super) fn describe(&self) -> String {
        let megabytes = |path: &Path| std::fs::metadata(path).map_or(0.0, |it| it.len() as f64 / 1e6);
        format!(
            "onbeat {:.1} MB, culprit {:.1} MB, both static",
            megabytes(&self.onbeat),
            megabytes(&self.culprit)
        )
    }
}

/// Builds both, optimised: the guest's CPU is emulated. They have a target folder of their own, as other flags
/// would have everything built anew each time.
///
/// # Errors
/// That they do not build.
pub(super) fn build(root: &Path, folder: &Path) -> Result<Programs, String> {
    for what in [["--package=onbeat", "--bin=onbeat"], ["--package=onbeat-runtime", "--example=culprit"]] {
        let mut cargo = command::cargo(root, &["build", "--quiet", "--profile=guest", "--target", TARGET]);
        cargo.args(what).env("CARGO_TARGET_DIR", folder).env("RUSTFLAGS", "-C target-feature=+crt-static");
        command::run(&mut cargo)?;
    }
    let built = folder.join(TARGET).join("guest");
    Ok(Programs { onbeat: built.join("onbeat"), culprit: built.join("examples/culprit") })
}
