//! The machine under the cycle: read, checked, prepared, put back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`conditions`] | the machine a measurement was made on |
//! | [`usage`] | what its CPUs did between two instants: busy, idle, stolen |
//! | [`check`] | what makes a cycle late, checked: found, wanted, why, how to fix |
//! | [`ethtool`] | what the driver of a network interface says |
//! | [`journal`] | every change to the machine, remembered before it is made, and undone |
//! | [`shield`] | a CPU of its own for one thread |
//! | [`cpus`] | sets of CPUs as the kernel writes them |
//! | [`task`] | threads of the machine and the CPUs they may use |
//! | [`root`] | files below a root folder, read without trust |
#![deny(unsafe_code)]

pub mod check;
pub mod conditions;
pub mod cpus;
pub mod ethtool;
pub mod journal;
pub mod root;
pub mod shield;
mod sys;
pub mod task;
pub mod usage;
