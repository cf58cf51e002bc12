//! The seam between the real-time cycle and everything that is not real-time, across processes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`description`] | what a running cycle is: robot, axes, controllers, ports; written once, before the first beat |
//! | [`state`] | how it stands: one [`state::State`] a beat, newest wins |
//! | [`command`] | what it is asked to do: one [`command::Command`], newest wins, with a time-to-live |
//! | [`message`] | the messages of the ports `control` and `trajectory` |
//! | [`words`] | the codes of a state in words |
//! | [`sensor`] | what device tasks tell: IMU, scans, sonar, LED strip |
//! | [`channel`] | datagram channels: named ports, both ways, messages or streams, bounded |
//! | [`diagnostics`] | what it tells of itself a few times a second: JSON |
//! | [`seam`] | the side of the process that runs the cycle: makes all of it, and the [`door`] |
//! | [`attach`] | the side of everybody else |
//! | [`door`] | the thread that lets others in, and what is said there |
//! | [`cell`] | the lock-free code under state, command and diagnostics |
//! | [`ring`] | bounded, drop and count, within a process |
//!
//! What may be killed, and when, and what the peers may do: `docs/seam.md`.
//!
//! All numbers are SI (rad, m, N m, s) unless a name ends in `_ns`: nanoseconds, instants of CLOCK_MONOTONIC.
#![deny(unsafe_code)]

pub mod attach;
mod bytes;
pub mod cell;
pub mod channel;
pub mod command;
pub mod description;
pub mod diagnostics;
pub mod door;
pub mod message;
mod place;
mod region;
pub mod ring;
pub mod seam;
pub mod sensor;
pub mod state;
mod sys;
pub mod words;

pub use region::{Other, RegionError};
