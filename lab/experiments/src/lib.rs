//! Experiments of the papers: each runs, records, and reports its results next to the paper's
//! numbers. The program `onbeat-measure` is their command line.
//!
//! | module | contents |
//! |---|---|
//! | [`runner`] | context and errors of an experiment |
//! | [`progress`] | its cells, and the time left |
//! | [`kept`] | completely measured cells, for a resumed run |
//! | [`paper`] | numbers of the papers, as printed |
//! | [`beside`] | runs in the papers' own tables, next to the papers' columns |
//! | [`surroundings`] | state of the machine before and during a measurement, and the resulting doubts |
//! | [`load`] | loads during a measurement |
//! | [`thread`] | real-time settings of an experiment's threads |
//! | [`onbeat_run`] | run of the bus in a separate process |
//! | [`tuning`] | effect of each real-time tuning |
//! | [`child`] | child process that never outlives its parent |
//! | [`cable`] | two network namespaces and a veth pair |
//! | [`frames`] | frames of a cycle on a simulated bus |
//! | [`interference`] | period jitter of the bus under load, seen by an independent observer |
//! | [`jitter`] | period jitter of a bus, as an independent observer sees it |
//! | [`servo`] | six drives for a minute: T_period, T_jitter, T_exec |
//! | [`ipc`] | cost of communication between threads |
//! | [`ecci`] | cost of sharing the cycle's state with many readers |
//! | [`tasks`] | two periodic tasks next to their computed response times |
//! | [`devices`] | the service robot's five devices: periods, response times, utilisation |
//! | [`cost`] | cost of a cycle by the number of its SubDevices, axes and signals |
//! | [`wakeup`] | our pacer next to `cyclictest` |
//! | [`navigation`] | robot that drives round an obstacle: planner and control in one process, and in two |
//! | [`culprit`] | test load that delays a cycle |
//! | [`path`], [`convolution`] | its path: lines, arcs and splines on the floor, and the central velocity along one |
//! | [`omni`] | robot that follows a path of the convolution-based generator |
//! | [`interrupt`] | latency from an interrupt to user code |
//! | [`xddp`] | message through a port, to an ordinary task and back |
#![deny(unsafe_code)]

pub mod beside;
pub mod cable;
pub mod child;
pub mod convolution;
pub mod cost;
pub mod culprit;
pub mod devices;
mod distribution;
pub mod ecci;
pub mod frames;
pub mod interference;
pub mod interrupt;
pub mod ipc;
pub mod jitter;
pub mod kept;
pub mod load;
pub mod navigation;
pub mod omni;
pub mod onbeat_run;
pub mod paper;
pub mod path;
mod peers;
pub mod progress;
mod raw;
pub mod runner;
pub mod servo;
pub mod surroundings;
mod sys;
pub mod tasks;
pub mod thread;
pub mod tuning;
pub mod wakeup;
pub mod xddp;

pub use progress::Progress;
pub use runner::{Context, Error, Programs};
