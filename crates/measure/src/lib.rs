//! The papers' experiments: each runs, records, and reports beside the paper's own numbers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runner`] | what an experiment is given, and how it fails |
//! | [`surroundings`] | the machine before and over a measurement, and the doubts it raises |
//! | [`load`] | what else the machine is made to do |
//! | [`onbeat_run`] | a run of the bus in a process of its own |
//! | [`load`] | what else the machine does meanwhile |
//! | [`tuning`] | what each real-time tuning is worth |
//! | [`servo`] | six drives for a minute: T_period, T_jitter, T_exec |
#![deny(unsafe_code)]

pub mod load;
pub mod onbeat_run;
pub mod runner;
pub mod servo;
pub mod surroundings;
mod sys;
pub mod tuning;

pub use runner::{Context, Error};
