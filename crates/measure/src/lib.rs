//! The papers' experiments: each runs, records, and reports beside the paper's own numbers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runner`] | what an experiment is given, and how it fails |
//! | [`surroundings`] | the machine before and over a measurement, and the doubts it raises |
//! | [`load`] | what else the machine is made to do |
//! | [`thread`] | what the threads of an experiment ask of the system |
//! | [`onbeat_run`] | a run of the bus in a process of its own |
//! | [`tuning`] | what each real-time tuning is worth |
//! | [`child`] | a process of ours, which never outlives us |
//! | [`cable`] | two network namespaces and a veth pair |
//! | [`interference`] | period jitter of the bus under load, seen by an independent observer |
//! | [`servo`] | six drives for a minute: T_period, T_jitter, T_exec |
//! | [`ipc`] | what it costs threads to tell each other something |
//! | [`ecci`] | what the cycle pays to share its state with many readers |
//! | [`tasks`] | two periodic tasks beside their computed response times |
//! | [`devices`] | the service robot's five devices: periods, responses, utilisation |
//! | [`wakeup`] | our pacer beside `cyclictest` |
//! | [`navigation`] | a robot round an obstacle: planner and control in one process, and with the seam between |
//! | [`omni`] | a robot on its path, by the convolution-based generator |
//! | [`interrupt`] | from an interrupt to user code |
#![deny(unsafe_code)]

pub mod cable;
pub mod child;
pub mod devices;
mod distribution;
pub mod ecci;
pub mod interference;
pub mod interrupt;
pub mod ipc;
pub mod load;
pub mod navigation;
pub mod omni;
pub mod onbeat_run;
mod peers;
mod raw;
pub mod runner;
pub mod servo;
pub mod surroundings;
mod sys;
pub mod tasks;
pub mod thread;
pub mod tuning;
pub mod wakeup;

pub use runner::{Context, Error};
