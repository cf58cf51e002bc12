//! `onbeat-ros2`: ROS 2 without a ROS installation.
#![forbid(unsafe_code)]

fn main() {}
