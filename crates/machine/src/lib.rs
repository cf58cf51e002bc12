//! The machine under the cycle: read, checked, prepared, put back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conditions`] | the machine a measurement was made on |
//! | [`usage`] | what its CPUs did between two instants: busy, idle, stolen |
//! | [`root`] | files below a root folder, read without trust |
#![deny(unsafe_code)]

pub mod conditions;
pub mod root;
pub mod usage;
