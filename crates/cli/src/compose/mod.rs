//! From the robot's description to the parts that run it.

pub(crate) mod axes;
pub(crate) mod configuration;
pub(crate) mod controller;
pub(crate) mod link;
pub(crate) mod peripherals;
pub(crate) mod profile;
pub(crate) mod robot_file;
pub(crate) mod seam;
pub(crate) mod segment;
pub(crate) mod signals;
mod urdf;
