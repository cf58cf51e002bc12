//! Drivers, used by the ordinary tasks only.
//!
//! | module | device | connection | interface that simulation replaces |
//! |---|---|---|---|
//! | [`range_finder`] | SCIP 2.0 laser range finder | serial port, [`serial`] | none: the simulated one has a pty |
//! | [`imu`] | MPU-6050 | I2C, crate `i2cdev` | [`imu::Registers`] |
//! | [`sonar`] | HC-SR04 | GPIO, crate `gpiocdev` | [`sonar::Lines`] |
//! | [`led_strip`] | APA102, WS2812 | SPI, crate `spidev` | [`led_strip::Wire`] |
//! | [`actuators`] | two driven wheels | the cycle's shared-memory interface | [`actuators::Drives`] |

pub mod actuators;
pub mod imu;
pub mod led_strip;
pub mod range_finder;
pub mod serial;
pub mod sonar;
