//! Errors of a valid robot file in which one part is spoiled.

use onbeat_robot::{FileError, Robot};

/// Error of `file` with `good` in it replaced by `bad`.
pub(crate) fn spoiled(file: &str, good: &str, bad: &str) -> FileError {
    assert!(file.contains(good), "the good file has no `{good}`");
    match Robot::parse(&file.replacen(good, bad, 1), "r.toml") {
        Ok(_) => panic!("`{bad}` is accepted"),
        Err(error) => error,
    }
}
