//! Pair of a device's two tasks, joined by a channel.
//!
//! | module | contents |
//! |---|---|
//! | [`datagram`] | messages between the two |
//! | [`real_time`] | real-time task: works on numbers, never uses a driver, never waits |
//! | [`ordinary`] | ordinary task: owns the driver, waits for the device, retries |
//! | [`status`] | status of a device, for users and programs |

pub mod datagram;
pub mod ordinary;
pub mod real_time;
pub mod status;

pub use datagram::Datagram;
pub use ordinary::{DeviceError, Driver, Remarks};
pub use real_time::{Moment, Work};
pub use status::{DeviceStatus, Stage};
