//! The service robot's devices: sonar, laser range finder, LED strip, IMU and actuators, each a pair of a real-time
//! task and an ordinary one joined by a channel.
#![deny(unsafe_code)]

mod clock;
pub mod double;
pub mod driver;
pub mod imu;
pub mod led;
pub mod scip;
pub mod sonar;
