//! Registers of the MPU-6050 as far as they are used, and their values in SI units.
//!
//! Source: InvenSense, *MPU-6000 and MPU-6050 Register Map and Descriptions*, RM-MPU-6000A-00,
//! revision 4.2; noise from *Product Specification* PS-MPU-6000A-00, revision 3.4, 6.1 and 6.2. Not
//! used: FIFO, motion processor, auxiliary bus, interrupts.

use super::{GRAVITY, Motion};

/// I2C address with AD0 low; 0x69 with AD0 high.
pub const ADDRESS: u16 = 0x68;

/// Registers (3).
pub mod register {
    /// SMPLRT_DIV: with the filter on, a sample is taken every 1 + n milliseconds for a value of n.
    pub const SAMPLE_RATE_DIVIDER: u8 = 0x19;
    /// CONFIG: digital low-pass filter in bits 2..0.
    pub const CONFIG: u8 = 0x1a;
    /// GYRO_CONFIG: full scale in bits 4..3.
    pub const GYROSCOPE: u8 = 0x1b;
    /// ACCEL_CONFIG: full scale in bits 4..3.
    pub const ACCELEROMETER: u8 = 0x1c;
    /// ACCEL_XOUT_H, the first of fourteen: three accelerations, temperature, three angular
    /// velocities, high byte first.
    pub const MEASURED: u8 = 0x3b;
    /// PWR_MGMT_1: reset in bit 7, sleep in bit 6, clock in bits 2..0.
    pub const POWER: u8 = 0x6b;
    /// WHO_AM_I: 0x68, independent of AD0.
    pub const IDENTITY: u8 = 0x75;
}

/// Value of WHO_AM_I.
pub const IDENTITY: u8 = 0x68;

/// Number of bytes from [`register::MEASURED`] on.
pub const MEASURED: usize = 14;

/// Values written in sequence to configure the unit: awake on the gyroscope's clock, 94 Hz
/// bandwidth (filter 2), 500 samples/s, 500 degrees/s, 4 g. After power-on and each reset it sleeps
/// and has its default values.
pub const SET_UP: [(u8, u8); 5] = [
    (register::POWER, 0x01),
    (register::CONFIG, 0x02),
    (register::SAMPLE_RATE_DIVIDER, 0x01),
    (register::GYROSCOPE, 0x01 << 3),
    (register::ACCELEROMETER, 0x01 << 3),
];

/// Values of the fourteen measurement registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Raw {
    /// Acceleration along x, y, z.
    pub acceleration: [i16; 3],
    /// Temperature of the die.
    pub temperature: i16,
    /// Angular velocity about x, y, z.
    pub angular_velocity: [i16; 3],
}

impl Raw {
    /// Decodes the registers.
    #[must_use]
    pub fn parse(registers: &[u8; MEASURED]) -> Self {
        let number = |place: usize| i16::from_be_bytes([registers[2 * place], registers[2 * place + 1]]);
        Self {
            acceleration: [0, 1, 2].map(number),
            temperature: number(3),
            angular_velocity: [4, 5, 6].map(number),
        }
    }

    /// Values in SI units, with the scales of [`SET_UP`].
    #[must_use]
    pub fn motion(&self) -> Motion {
        Motion {
            angular_velocity: self.angular_velocity.map(|it| f64::from(it) * RADIANS_PER_SECOND),
            acceleration: self.acceleration.map(|it| f64::from(it) * METRES_PER_SECOND_SQUARED),
            // Register map, 4.18.
            temperature: f64::from(self.temperature) / 340.0 + 36.53 + 273.15,
        }
    }

    /// True if a value is at the end of its scale and may be clipped.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        let ends = |it: &i16| matches!(*it, i16::MIN | i16::MAX);
        self.acceleration.iter().chain(&self.angular_velocity).any(ends)
    }
}

/// rad/s per count for a full scale of 500 degrees/s: 65.5 counts per degree/s (4.19).
const RADIANS_PER_SECOND: f64 = std::f64::consts::PI / 180.0 / 65.5;

/// m/s^2 per count for a full scale of 4 g: 8192 counts per g (4.17).
const METRES_PER_SECOND_SQUARED: f64 = GRAVITY / 8192.0;

/// Variance of an angular velocity, (rad/s)^2: 0.05 degrees/s with this filter (6.1).
pub const ANGULAR_VELOCITY_VARIANCE: f64 = 7.6e-7;

/// Variance of an acceleration, (m/s^2)^2: 400 ug per root hertz (6.2) over 94 Hz, and 1 %
/// calibration error.
pub const ACCELERATION_VARIANCE: f64 = 1.1e-2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_read_high_byte_first_and_in_si() {
        let registers = [0x20, 0, 0xe0, 0, 0, 0, 0xf3, 0x30, 0x19, 0x96, 0, 0, 0xff, 0xff];
        let raw = Raw::parse(&registers);
        assert_eq!((raw.acceleration, raw.temperature), ([0x2000, -0x2000, 0], -3_280));
        let motion = raw.motion();
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-3;
        assert!(near(motion.acceleration[0], 9.806_65) && near(motion.acceleration[1], -9.806_65));
        // 6 550 counts are 100 degrees/s; -3 280 are 26.88 degrees Celsius.
        assert!(near(motion.angular_velocity[0], 100_f64.to_radians()));
        assert!(near(motion.temperature, 273.15 + 26.883), "{}", motion.temperature);
        assert!(!raw.is_saturated());
        assert!(Raw { angular_velocity: [0, i16::MIN, 0], ..raw }.is_saturated());
    }
}
