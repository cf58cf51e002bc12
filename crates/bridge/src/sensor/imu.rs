use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// What an inertial measurement unit says, and the orientation made of it. After the head, as 64-bit floating-point
/// numbers: orientation x, y, z, w; angular velocity x, y, z; linear acceleration x, y, z; the four variances in the
/// order below; the temperature.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imu {
    /// The head.
    pub head: Head,
    /// Unit quaternion x, y, z, w: from the unit's frame to one whose z axis points up. Its yaw is 0 where the task
    /// began and drifts; without a compass nothing says where north is.
    pub orientation: [f64; 4],
    /// About x, y, z of the unit, rad/s, without the bias at rest.
    pub angular_velocity: [f64; 3],
    /// Along x, y, z of the unit, m/s^2, gravity included: at rest and level it is +9.8 along z.
    pub linear_acceleration: [f64; 3],
    /// Variance of roll and pitch, rad^2.
    pub tilt_variance: f64,
    /// Variance of yaw, rad^2; it grows.
    pub yaw_variance: f64,
    /// Variance of each angular velocity, (rad/s)^2.
    pub angular_velocity_variance: f64,
    /// Variance of each acceleration, (m/s^2)^2.
    pub linear_acceleration_variance: f64,
    /// Of the unit, K.
    pub temperature: f64,
}

impl Imu {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 15 * 8;
    const KIND: u8 = 1;

    /// Writes it to the front of `bytes`; says how many it took, or `None` if there are fewer than [`Imu::SIZE`].
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

    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
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
