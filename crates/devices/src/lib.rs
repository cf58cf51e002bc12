//! The service robot's devices: sonar, laser range finder, LED strip, IMU and actuators, each a pair of a real-time
//! task and an ordinary one joined by a channel.
//!
//! | module | what it holds |
//! |---|---|
//! | [`scip`], [`imu`], [`sonar`], [`led`] | protocols, registers, filters: bytes and numbers, no I/O |
//! | [`pair`] | a real-time task, an ordinary task, and the channel between them |
//! | [`task`] | what the two of each device say to each other, and the real-time work |
//! | [`driver`] | what the ordinary tasks own: serial port, I2C, GPIO, SPI |
//! | [`double`] | devices that are not there |
//! | [`peripheral`], [`running`] | from a list of devices to running pairs of tasks |
#![deny(unsafe_code)]

mod clock;
pub mod double;
pub mod driver;
pub mod imu;
pub mod led;
pub mod pair;
pub mod peripheral;
pub mod running;
pub mod scip;
pub mod sonar;
pub mod task;

pub use pair::DeviceStatus;
pub use peripheral::{Kind, Peripheral, service_robot};
pub use running::{Prepared, Running, StartError};
