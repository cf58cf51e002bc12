//! A device's two tasks, joined by a channel.
//!
//! | module | what it holds |
//! |---|---|
//! | [`datagram`] | what passes between the two |
//! | [`real_time`] | the real-time task: works on numbers, never touches a driver, never waits |
//! | [`ordinary`] | the ordinary task: owns the driver, waits for the device, tries again |
//! | [`status`] | how a device stands, for people and programs |

pub mod datagram;
pub mod ordinary;
pub mod real_time;
pub mod status;

pub use datagram::Datagram;
pub use ordinary::{DeviceError, Driver};
pub use real_time::{Moment, Work};
pub use status::{DeviceStatus, Stage};
