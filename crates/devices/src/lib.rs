//! Devices of the service robot: sonar, laser range finder, LED strip, IMU and actuators, each with
//! a real-time task and an ordinary task joined by a channel.
//!
//! | module | contents |
//! |---|---|
//! | [`scip`], [`imu`], [`sonar`], [`led`], [`motor`] | protocols, registers, filters: no I/O |
//! | [`pair`] | real-time task, ordinary task, and the channel between them |
//! | [`task`] | messages between the two tasks of each device, and the real-time work |
//! | [`driver`] | drivers of the ordinary tasks: serial port, I2C, GPIO, SPI |
//! | [`fake`] | simulated devices |
//! | [`peripheral`], [`running`] | from a list of devices to running pairs of tasks |
#![deny(unsafe_code)]

pub mod driver;
pub mod fake;
pub mod imu;
pub mod led;
pub mod motor;
pub mod pair;
pub mod peripheral;
pub mod running;
pub mod scip;
pub mod sonar;
pub mod task;

pub use pair::DeviceStatus;
pub use peripheral::{Kind, Peripheral, WheelDrives, service_robot};
pub use running::{Prepared, Running, StartError};
