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
//!
//! All numbers are SI (rad, m, N m, s) unless a name ends in `_ns`: nanoseconds, instants of CLOCK_MONOTONIC.
#![deny(unsafe_code)]

pub mod command;
pub mod description;
pub mod message;
pub mod sensor;
pub mod state;
pub mod words;
