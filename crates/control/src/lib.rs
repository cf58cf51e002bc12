//! The real-time cycle and the real-time tasks on Linux.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cycle`] | the cycle itself: from release to release, phase by phase |
//! | [`controller`] | what moves the axes, in SI units |
//! | [`external`] | a controller in a process of its own |
//! | [`axis`] | axes bound to the process image |
//! | [`ipc`] | what other processes ask of the cycle, and see of it |
//! | [`bus`] | requests of other programs to the bus of a running cycle |
//! | [`observer`] | what a running cycle tells the rest of the program |
//! | [`sampling`] | its signals and axes of every cycle, for a recording |
//! | [`cycle_number`] | the number of the cycle on digital outputs |
//! | [`status`] | how it stands, read from any thread |
//! | [`task`] | real-time tasks beside the cycle, each with its own period |
//! | [`disturbance`] | what keeps a real-time thread from doing nothing but its work and its wait |
//! | [`interlock`] | digital inputs that stop axes, or permit them to be enabled |
//! | [`signal`] | process data by name |
//! | [`stop`] | a request to stop a cycle |
//! | [`verdict`] | what is wrong about a run that is over, and its exit code |
//! | [`delayed_lock`] | data shared with the cycle by a task that is not real-time |
//! | [`always_on`] | what every cycle wants and nobody has to ask for |
//! | [`profile`] | what a real-time thread asks of the system, and what it was granted |
//! | [`probe`] | wake-up latency of this machine, with nothing to do |
#![deny(unsafe_code)]

pub mod always_on;
pub mod axis;
pub mod bus;
mod cell;
pub mod controller;
pub mod cycle;
pub mod cycle_number;
pub mod delayed_lock;
pub mod disturbance;
pub mod external;
mod field;
pub mod interlock;
pub mod ipc;
pub mod observer;
pub mod probe;
pub mod profile;
pub mod sampling;
pub mod signal;
pub mod status;
pub mod stop;
mod sys;
pub mod task;
pub mod verdict;
mod watch;

pub use ethercat_linux::{bring_up, link, serve};
pub use rt::{clock, output, pacer};
