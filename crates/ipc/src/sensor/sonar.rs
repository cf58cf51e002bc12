use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// Measurement of a sonar. After the head: five 64-bit floating-point numbers in the order below.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sonar {
    /// Head.
    pub head: Head,
    /// Filtered distance, m; infinite without an echo.
    pub range: f64,
    /// Distance of the last ping alone, m; infinite without an echo.
    pub last: f64,
    /// Opening angle of the beam, rad.
    pub field_of_view: f64,
    /// Shortest range of the device, m.
    pub range_min: f64,
    /// Longest range of the device, m.
    pub range_max: f64,
}

impl Sonar {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 5 * 8;
    const KIND: u8 = 3;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`Sonar::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        writer.f64s(&[self.range, self.last, self.field_of_view, self.range_min, self.range_max]);
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
            range: reader.f64(),
            last: reader.f64(),
            field_of_view: reader.f64(),
            range_min: reader.f64(),
            range_max: reader.f64(),
        })
    }
}
