//! Trajectories: [`orders`] makes of a JointTrajectory what the port `trajectory` takes, [`goals`] keeps the goals of an
//! action as ROS 2 knows them. Neither reads a clock nor talks to anybody.

pub(crate) mod goals;
pub(crate) mod orders;
