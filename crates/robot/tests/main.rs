//! Robot files: what they describe, and the sentences about bad ones.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod any_text;
mod bad_bodies;
mod bad_files;
mod brake_outputs;
mod cycle;
mod drive_axes;
mod drive_homing;
mod drive_limits;
mod examples;
mod interlocks;
mod jogs;
mod modes;
mod oversampling;
mod peripherals;
mod problems;
mod schema;
mod sensors;
mod signals;
mod simulated_kinds;
mod support;
