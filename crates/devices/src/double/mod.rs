//! Devices that are not there: each behaves as its data sheet has it, for tests, measurements and simulated robots.
//!
//! | double | stands behind | what of the driver it proves |
//! |---|---|---|
//! | [`range_finder`] | a real pty | all of it: port, bytes, protocol, time |
//! | [`imu`] | the driver's registers | all but the I2C transfers |
//! | [`sonar`] | the driver's line | all but the GPIO lines |
//! | [`strip`] | the driver's wire | all but the SPI transfers |
//! | [`wheels`] | the driver itself | nothing: it is the drive |
//!
//! They write what they say with code of their own: the codecs they are read with are not among it.

pub mod imu;
pub mod pty;
pub mod range_finder;
pub mod scene;
pub mod sonar;
pub mod strip;
pub mod wheels;
