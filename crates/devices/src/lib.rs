//! The service robot's devices: sonar, laser range finder, LED strip, IMU and actuators, each a pair of a real-time
//! task and an ordinary one joined by a channel.
#![deny(unsafe_code)]

pub mod scip;
