//! Limits of the process (getrlimit(2)) under which nothing here can work: reported, where the
//! system would end it without a word.

use rustix::process::{Resource, getrlimit};

use crate::failure::Failure;

/// Stack of the first thread that every command has enough with.
const STACK: u64 = 1 << 20;

/// Address space that a program with a few threads takes before it does anything.
const ADDRESS_SPACE: u64 = 256 << 20;

/// Refuses to begin where it would end in the middle.
///
/// # Errors
/// A limit that is too low, with what to do.
pub(crate) fn check() -> Result<(), Failure> {
    at_least(Resource::Stack, STACK, "stack", "-s")?;
    at_least(Resource::As, ADDRESS_SPACE, "address space", "-v")
}

fn at_least(resource: Resource, needed: u64, what: &str, option: &str) -> Result<(), Failure> {
    match getrlimit(resource).current {
        Some(limit) if limit < needed => Err(Failure::new(format!(
            "this process may have {} KiB of {what}, expected {} KiB or more: raise it with `ulimit {option} {}`",
            limit >> 10,
            needed >> 10,
            needed >> 10
        ))),
        _ => Ok(()),
    }
}
