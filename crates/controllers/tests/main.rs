//! The built-in controllers on simulated buses.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

mod base_troubles;
mod bases;
mod manager_troubles;
mod requests;
mod rig;
mod start_requests;
mod tools;
mod trajectories;
mod trajectory_troubles;
