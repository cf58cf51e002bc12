//! What becomes of a good robot file in which one thing is spoiled.

use onbeat_robot::{FileError, Robot};

/// Why `file`, with `good` in it replaced by `bad`, is no robot file.
pub(crate) fn spoiled(file: &str, good: &str, bad: &str) -> FileError {
    assert!(file.contains(good), "the good file has no `{good}`");
    match Robot::parse(&file.replacen(good, bad, 1), "r.toml") {
        Ok(_) => panic!("`{bad}` is accepted"),
        Err(error) => error,
    }
}
