//! Operating system interface: every unsafe block of this crate, each with its argument.
//!
//! | module | system calls for |
//! |---|---|
//! | [`mapping`] | memory shared with another process |
//! | [`futex`] | sleep and wake across processes |
//! | [`groups`] | groups of the process at the other end of a socket |
#![allow(unsafe_code)]

pub(crate) mod futex;
pub(crate) mod groups;
pub(crate) mod mapping;
