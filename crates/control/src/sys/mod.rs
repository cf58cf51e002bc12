//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | what it asks Linux for |
//! |---|---|
//! | [`memory`] | memory lock and pre-faulting |
//! | [`usage`] | what it has counted of this one |
#![allow(unsafe_code)]

pub(crate) mod memory;
pub(crate) mod usage;
