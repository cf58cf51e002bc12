//! Drivers: what the ordinary tasks own.
//!
//! | module | device | told by | behind the trait |
//! |---|---|---|---|
//! | [`range_finder`] | SCIP 2.0 laser range finder | a serial port, [`serial`] | nothing: its double has a pty |
//! | [`imu`] | MPU-6050 | I2C, crate `i2cdev` | [`imu::Registers`] |
//! | [`sonar`] | HC-SR04 | GPIO, crate `gpiocdev` | [`sonar::Lines`] |
//! | [`led_strip`] | APA102, WS2812 | SPI, crate `spidev` | [`led_strip::Wire`] |
//! | [`actuators`] | two driven wheels | the bus cycle, over its seam | [`actuators::Drives`] |

pub mod actuators;
pub mod imu;
pub mod led_strip;
pub mod range_finder;
pub mod serial;
pub mod sonar;
