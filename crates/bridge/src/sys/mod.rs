//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | what it asks Linux for |
//! |---|---|
//! | [`mapping`] | memory that another process also has |
//! | [`groups`] | the groups of who is at the other end of a socket |
#![allow(unsafe_code)]

pub(crate) mod groups;
pub(crate) mod mapping;
