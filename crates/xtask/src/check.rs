//! Checks of formatting, lints and documentation.

use std::path::Path;

use crate::command;
use crate::report::{Outcome, Report};

/// Runs all three.
pub(crate) fn all(root: &Path, report: &mut Report) {
    format(root, report);
    clippy(root, report);
    documentation(root, report);
}

/// Checks that every file is formatted by rustfmt.
pub(crate) fn format(root: &Path, report: &mut Report) {
    report.step("format", || Outcome::of(&mut command::cargo(root, &["fmt", "--all", "--check"])));
}

/// Checks for warnings in libraries, programs, tests and examples.
pub(crate) fn clippy(root: &Path, report: &mut Report) {
    let arguments = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    report.step("clippy", || Outcome::of(&mut command::cargo(root, &arguments)));
}

/// Checks for broken links in the documentation.
fn documentation(root: &Path, report: &mut Report) {
    let mut command = command::cargo(root, &["doc", "--workspace", "--no-deps"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    report.step("documentation", || Outcome::of(&mut command));
}
