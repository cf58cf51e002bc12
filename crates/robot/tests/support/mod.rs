//! Errors of a valid robot file in which one part is spoiled.

#![allow(dead_code, reason = "each test program uses its part")]

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
