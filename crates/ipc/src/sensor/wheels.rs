use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// State of two driven wheels, left and right. After the head, as pairs of 64-bit floating-point
/// numbers: positions, velocities, commanded velocities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wheels {
    /// Head.
    pub head: Head,
    /// Positions, rad since the start.
    pub positions: [f64; 2],
    /// Velocities, rad/s.
    pub velocities: [f64; 2],
    /// Commanded velocities, rad/s.
    pub commanded: [f64; 2],
}

/// Request to two driven wheels. After a head with ignored stamps: two velocities, left and right,
/// as 64-bit floating-point numbers; their time-to-live (32 bits, ms).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WheelRequest {
    /// Velocities, rad/s.
    pub velocities: [f64; 2],
    /// Time-to-live, ms: when it has expired without a newer request, the wheels are stopped.
    pub holds_ms: u32,
}

impl Wheels {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 6 * 8;
    const KIND: u8 = 6;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`Wheels::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        [self.positions, self.velocities, self.commanded].iter().for_each(|pair| writer.f64s(pair));
        Some(writer.finish())
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (head, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        Ok(Self { head, positions: reader.f64s(), velocities: reader.f64s(), commanded: reader.f64s() })
    }
}

impl WheelRequest {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 2 * 8 + 4;
    const KIND: u8 = 7;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`WheelRequest::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        Head::default().write(Self::KIND, &mut writer);
        writer.f64s(&self.velocities);
        writer.u32(self.holds_ms);
        Some(writer.finish())
    }

    /// Decodes a message; allocates nothing, because it runs on the real-time side. The velocities
    /// are not checked: they may be NaN or infinite.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (_, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        Ok(Self { velocities: reader.f64s(), holds_ms: reader.u32() })
    }
}
