//! Simulated devices, each after its data sheet, for tests, measurements and simulated robots.
//!
//! | simulated device | connected through | part of the driver under test |
//! |---|---|---|
//! | [`range_finder`] | a real pty | all: port, bytes, protocol, timing |
//! | [`imu`], [`myahrs`] | the driver's registers | all but the I2C transfers |
//! | [`sonar`] | the driver's line | all but the GPIO lines |
//! | [`strip`], [`dc_motors`] | the driver's wire | all but the SPI transfers |
//! | [`wheels`] | the driver itself | none: it is the drive |
//!
//! Their encoders are their own: they share no codec with the drivers under test.

pub mod dc_motors;
pub mod imu;
pub mod myahrs;
pub mod pty;
pub mod range_finder;
pub mod scene;
pub mod sonar;
pub mod strip;
pub mod wheels;
