use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// Measurement of an inertial measurement unit, and the orientation computed from it or reported by
/// the unit. After the head, as 64-bit floating-point numbers: orientation x, y, z, w; angular
/// velocity x, y, z; linear acceleration x, y, z; the four variances in the order below; the
/// temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imu {
    /// Head.
    pub head: Head,
    /// Unit quaternion x, y, z, w from the unit's frame to a frame with the z axis up. If the unit
    /// has a compass and reports it, yaw counts from east; otherwise yaw is 0 at the start of the
    /// task and drifts.
    pub orientation: [f64; 4],
    /// Angular velocity about x, y, z of the unit, rad/s, without the bias at standstill.
    pub angular_velocity: [f64; 3],
    /// Acceleration along x, y, z of the unit, m/s^2, with gravity: +9.8 along z when level and not
    /// moving.
    pub linear_acceleration: [f64; 3],
    /// Variance of roll and pitch, rad^2.
    pub tilt_variance: f64,
    /// Variance of yaw, rad^2; without a compass it grows.
    pub yaw_variance: f64,
    /// Variance of each angular velocity, (rad/s)^2.
    pub angular_velocity_variance: f64,
    /// Variance of each acceleration, (m/s^2)^2.
    pub linear_acceleration_variance: f64,
    /// Temperature of the unit, K.
    pub temperature: f64,
}

impl Imu {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 15 * 8;
    const KIND: u8 = 1;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`Imu::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        writer.f64s(&self.orientation);
        writer.f64s(&self.angular_velocity);
        writer.f64s(&self.linear_acceleration);
        writer.f64s(&[self.tilt_variance, self.yaw_variance]);
        writer.f64s(&[self.angular_velocity_variance, self.linear_acceleration_variance, self.temperature]);
        Some(writer.finish())
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (head, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        Ok(Self {
            head,
            orientation: reader.f64s(),
            angular_velocity: reader.f64s(),
            linear_acceleration: reader.f64s(),
            tilt_variance: reader.f64(),
            yaw_variance: reader.f64(),
            angular_velocity_variance: reader.f64(),
            linear_acceleration_variance: reader.f64(),
            temperature: reader.f64(),
        })
    }
}
