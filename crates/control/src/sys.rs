//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | calls |
//! |---|---|
//! | [`memory`] | memory lock and pre-faulting |
//! | [`usage`] | the kernel's counters of this thread |
#![allow(unsafe_code)]

pub(crate) mod memory;
pub(crate) mod usage;
