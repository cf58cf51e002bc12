//! From the robot's description to the parts that run it.

pub(crate) mod robot_file;
pub(crate) mod segment;
