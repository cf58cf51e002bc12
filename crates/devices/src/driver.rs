//! Drivers, used by the ordinary tasks only.
//!
//! | module | device | connection | interface that simulation replaces |
//! |---|---|---|---|
//! | [`range_finder`] | SCIP 2.0 range finder | serial port, [`serial`] | none (simulator: pty) |
//! | [`imu`], [`myahrs`] | MPU-6050, myAHRS+ | I2C, crate `i2cdev` | [`imu::Registers`] |
//! | [`sonar`] | HC-SR04 | GPIO, crate `gpiocdev` | [`sonar::Lines`] |
//! | [`led_strip`] | APA102, WS2812 | SPI, [`spi`], crate `spidev` | [`spi::Wire`] |
//! | [`actuators`] | two driven wheels | shared memory of the cycle | [`actuators::Drives`] |
//! | [`dc_motors`] | DC motors: MCP49x2, AS5045 | SPI | [`spi::Wire`] |

pub mod actuators;
pub mod dc_motors;
pub mod imu;
pub mod led_strip;
pub mod myahrs;
pub mod range_finder;
pub mod serial;
pub mod sonar;
pub mod spi;
