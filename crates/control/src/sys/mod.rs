//! The operating system: every unsafe block of this crate, each with its argument.
//!
//! | module | calls |
//! |---|---|
//! | [`memory`] | memory lock and pre-faulting |
//! | [`perf`] | the kernel's events of a thread |
//! | [`usage`] | the kernel's counters of this thread |
#![allow(unsafe_code)]

pub(crate) mod memory;
pub(crate) mod perf;
pub(crate) mod usage;
