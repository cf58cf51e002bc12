//! Machine under the cycle: reading, checking, preparing and restoring it.
//!
//! | module | contents |
//! |---|---|
//! | [`conditions`] | machine a measurement was made on |
//! | [`usage`] | use of its CPUs between two instants: busy, idle, stolen |
//! | [`check`] | checks for causes of late cycles: found, wanted, reason, fix |
//! | [`ethtool`] | settings of a network interface's driver |
//! | [`nic`] | preparation of a bus's interface for a cycle |
//! | [`journal`] | journal of changes, recorded before they are made, and undone from it |
//! | [`shield`] | reservation of a CPU for one thread |
//! | [`cpus`] | sets of CPUs in the kernel's formats |
//! | [`task`] | threads of the machine and their CPUs |
//! | [`root`] | untrusted files below a root folder |
#![deny(unsafe_code)]

pub mod check;
pub mod conditions;
pub mod cpus;
pub mod ethtool;
pub mod journal;
pub mod nic;
pub mod root;
pub mod shield;
mod sys;
pub mod task;
pub mod usage;
