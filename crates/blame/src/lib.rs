//! Why a beat was late: the kernel's trace around it, recorded and read.
//!
//! | module | what it holds |
//! |---|---|
//! | [`trace`] | the kernel's own trace: a flight recorder and its decoder |
#![deny(unsafe_code)]

pub mod trace;
