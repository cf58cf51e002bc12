//! Operating system interface: every unsafe block of this crate, each with its argument.
//!
//! | module | system calls for |
//! |---|---|
//! | [`mapping`] | memory shared with another process |
//! | [`futex`] | sleep and wake across processes |
//! | [`groups`] | groups of the process at the other end of a socket |
//! | [`word`] | none: a load from memory that is mapped read-only |
#![allow(unsafe_code)]

pub(crate) mod futex;
pub(crate) mod groups;
pub(crate) mod mapping;
pub(crate) mod word;
