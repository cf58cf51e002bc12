//! From a robot's description to the parts that run it, for programs that need a part alone.
//!
//! [`crate::Robot`] is all of them.

pub mod axes;
pub mod configuration;
pub mod controller;
pub mod ipc;
pub mod link;
#[cfg(feature = "devices")]
pub mod peripherals;
pub mod profile;
pub mod robot_file;
pub mod segment;
pub mod signals;
mod urdf;
