//! The real-time cycle of a robot on Linux.
//!
//! | module | part |
//! |---|---|
//! | [`cycle`] | the cycle itself: from release to release, phase by phase |
//! | [`controller`] | the controller of the axes, in SI units |
//! | [`external`] | a controller in a separate process |
//! | [`axis`] | axes bound to the process image |
//! | [`ipc`] | commands of other processes, and the state they see |
//! | [`bus`] | requests of other programs to the bus of a running cycle |
//! | [`observer`] | records, events and status for the rest of the program |
//! | [`sampling`] | signals and axes of every cycle, for a recording |
//! | [`status`] | status of a cycle, read from any thread |
//! | [`interlock`] | digital inputs that stop axes, or permit them to be enabled |
//! | [`signal`] | process data by name |
//! | [`stop`] | a request to stop a cycle |
//! | [`verdict`] | faults of a run that has ended, and its exit code |
#![forbid(unsafe_code)]

pub mod axis;
pub mod bus;
pub mod clock_lock;
pub mod controller;
pub mod cycle;
mod digital_input;
pub mod external;
pub mod interlock;
pub mod ipc;
pub mod observer;
mod publication;
pub mod sampling;
pub mod signal;
pub mod status;
pub mod stop;
pub mod verdict;
mod watch;
