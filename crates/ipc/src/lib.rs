//! Shared-memory interface between the real-time cycle and programs that are not real-time, across
//! processes.
//!
//! | module | contents |
//! |---|---|
//! | [`description`] | description of a running cycle: robot, axes, controllers, ports; written once |
//! | [`state`] | state: one [`state::State`] a cycle, the newest counts |
//! | [`command`] | commands: one [`command::Command`] with a time-to-live, the newest counts |
//! | [`controller`] | controller process: a request per cycle, an answer before its deadline |
//! | [`force`] | signals held at a value until a time has expired |
//! | [`message`] | the messages of the ports `control` and `trajectory` |
//! | [`request`] | state of the axes after a request that was carried out |
//! | [`words`] | texts for the codes of a state |
//! | [`sensor`] | messages of device tasks: IMU, scans, sonar, LED strip |
//! | [`channel`] | datagram channels: named, bounded ports, of messages or streams |
//! | [`diagnostics`] | diagnostics, a few times a second, as JSON |
//! | [`bus`] | requests to the bus of a running cycle: SDOs, states, events |
//! | [`server`] | side of the process with the cycle: makes all of it, starts the [`service`] |
//! | [`client`] | client side |
//! | [`service`] | the thread that lets clients attach, and its protocol |
//! | [`text`] | text requests to any other running program of ours |
//! | [`cell`] | lock-free code under state, command and diagnostics |
//! | [`ring`] | bounded ring within a process that drops and counts |
//!
//! `docs/ipc.md` describes which processes may be killed, and when, and what each peer may do.
//!
//! All numbers are SI (rad, m, N m, s) unless a name ends in `_ns`: nanoseconds, instants of
//! CLOCK_MONOTONIC.
#![deny(unsafe_code)]

pub mod bus;
mod bytes;
pub mod cell;
pub mod channel;
pub mod client;
pub mod command;
pub mod controller;
pub mod description;
pub mod diagnostics;
pub mod force;
pub mod message;
mod place;
pub mod reference;
mod region;
pub mod request;
pub mod ring;
pub mod sensor;
pub mod server;
pub mod service;
pub mod state;
mod sys;
pub mod text;
mod value;
pub mod words;

pub use region::{Other, RegionError};

pub use types::units;
