//! An inertial measurement unit: from registers to an orientation. No I/O, no clock.
//!
//! | module | what it holds |
//! |---|---|
//! | [`mpu6050`] | the registers of InvenSense's MPU-6050, and its numbers in SI |
//! | [`orientation`] | which way is up, from angular velocities and accelerations |

pub mod mpu6050;
pub mod orientation;

pub use orientation::Orientation;

/// What a unit measured at one instant, in its own frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// rad/s about x, y, z.
    pub angular_velocity: [f64; 3],
    /// m/s^2 along x, y, z, gravity included.
    pub acceleration: [f64; 3],
    /// K.
    pub temperature: f64,
}

/// Standard gravity, m/s^2.
pub const GRAVITY: f64 = 9.806_65;
