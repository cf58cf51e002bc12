//! Robot files: what they describe, and the sentences about bad ones.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod any_text;
mod bad_bodies;
mod bad_files;
mod brake_outputs;
mod cycle;
mod drive_axes;
mod drive_homing;
mod drive_limits;
mod examples;
mod interlocks;
mod jogs;
mod modes;
mod oversampling;
mod peripherals;
mod problems;
mod schema;
mod sensors;
mod signals;
mod simulated_kinds;

/// Errors of a valid robot file in which one part is spoiled.
mod support {
    use onbeat_robot::{FileError, RobotConfig};

    /// Error of `file` with `good` in it replaced by `bad`.
    pub(crate) fn spoiled(file: &str, good: &str, bad: &str) -> FileError {
        assert!(file.contains(good), "the good file has no `{good}`");
        match RobotConfig::parse(&file.replacen(good, bad, 1), "r.toml") {
            Ok(_) => panic!("`{bad}` is accepted"),
            Err(error) => error,
        }
    }

    /// The sentence of that error, without its place.
    pub(crate) fn sentence(file: &str, good: &str, bad: &str) -> String {
        let error = spoiled(file, good, bad);
        assert!(error.place.is_some(), "{error}");
        format!("{}, expected {}: {}", error.found, error.expected, error.remedy)
    }
}
