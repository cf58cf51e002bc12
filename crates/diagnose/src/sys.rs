//! The operating system: every unsafe block of this crate, each with its argument.
#![allow(unsafe_code)]

pub(crate) mod perf;
