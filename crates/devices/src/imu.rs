//! Inertial measurement unit: from registers to an orientation, without I/O or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`mpu6050`] | registers of InvenSense's MPU-6050, and their values in SI units |
//! | [`myahrs`] | registers of WITHROBOT's myAHRS+, and their values in SI units |
//! | [`orientation`] | orientation from angular velocities and accelerations |

pub mod mpu6050;
pub mod myahrs;
pub mod orientation;

pub use orientation::Orientation;
use orientation::turned;

/// Measurement of a unit at one instant, in its own frame.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Motion {
    /// Angular velocity about x, y, z, rad/s.
    pub angular_velocity: [f64; 3],
    /// Acceleration along x, y, z, m/s^2, with gravity.
    pub acceleration: [f64; 3],
    /// Temperature, K.
    pub temperature: f64,
}

/// Standard gravity, m/s^2.
pub const GRAVITY: f64 = 9.806_65;
