//! Operating system interface: every unsafe block of this crate, each with its argument.
//!
//! | module | system calls for |
//! |---|---|
//! | [`mapping`] | memory shared with another process |
//! | [`futex`] | sleep and wake across processes |
//! | [`groups`] | groups of the process at the other end of a socket |
//! | [`word`] | none: a load from memory that is mapped read-only |
#![allow(unsafe_code)]

use rustix::time::{ClockId, clock_gettime};

pub(crate) mod futex;
pub(crate) mod groups;
pub(crate) mod mapping;
pub(crate) mod word;

/// Current time of CLOCK_MONOTONIC, ns.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
