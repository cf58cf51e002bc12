use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// How two driven wheels turn, left and right. After the head, as pairs of 64-bit floating-point numbers: positions,
/// velocities, velocities they were last told.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wheels {
    /// The head.
    pub head: Head,
    /// rad since the start.
    pub positions: [f64; 2],
    /// rad/s.
    pub velocities: [f64; 2],
    /// rad/s.
    pub told: [f64; 2],
}

/// How two driven wheels shall turn. After a head whose stamps do not count: two velocities, left and right, as 64-bit
/// floating-point numbers; for how long that holds (32 bits, ms).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WheelRequest {
    /// rad/s.
    pub velocities: [f64; 2],
    /// When this is over and nothing newer came, the wheels are brought to rest, ms.
    pub holds_ms: u32,
}

impl Wheels {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 6 * 8;
    const KIND: u8 = 6;

    /// Writes it to the front of `bytes`; says how many it took, or `None` if there are fewer than [`Wheels::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        [self.positions, self.velocities, self.told].iter().for_each(|pair| writer.f64s(pair));
        Some(writer.finish())
    }

    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (head, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        Ok(Self { head, positions: reader.f64s(), velocities: reader.f64s(), told: reader.f64s() })
    }
}

impl WheelRequest {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 2 * 8 + 4;
    const KIND: u8 = 7;

    /// Writes it to the front of `bytes`; says how many it took, or `None` if there are fewer than
    /// [`WheelRequest::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        Head::default().write(Self::KIND, &mut writer);
        writer.f64s(&self.velocities);
        writer.u32(self.holds_ms);
        Some(writer.finish())
    }

    /// Reads one; allocates nothing, for it is read on the real-time side. The velocities may be any numbers, or none.
    ///
    /// # Errors
    /// Why it is none.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (_, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        Ok(Self { velocities: reader.f64s(), holds_ms: reader.u32() })
    }
}
