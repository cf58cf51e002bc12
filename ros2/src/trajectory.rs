//! Trajectories: [`orders`] converts a JointTrajectory to orders of the port `trajectory`,
//! [`goals`] keeps the goals of an action as in ROS 2. Neither reads a clock or does I/O.

pub(crate) mod goals;
pub(crate) mod orders;
