use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// What a sonar says. After the head: five 64-bit floating-point numbers in the order below.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sonar {
    /// The head.
    pub head: Head,
    /// Filtered distance, m; infinite where nothing answers.
    pub range: f64,
    /// Distance of the last ping alone, m; infinite where nothing answered.
    pub last: f64,
    /// Opening angle of the beam, rad.
    pub field_of_view: f64,
    /// The device measures nothing nearer, m.
    pub range_min: f64,
    /// The device measures nothing farther, m.
    pub range_max: f64,
}

impl Sonar {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 5 * 8;
    const KIND: u8 = 3;

    /// Writes it to the front of `bytes`; says how many it took, or `None` if there are fewer than [`Sonar::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        writer.f64s(&[self.range, self.last, self.field_of_view, self.range_min, self.range_max]);
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
            range: reader.f64(),
            last: reader.f64(),
            field_of_view: reader.f64(),
            range_min: reader.f64(),
            range_max: reader.f64(),
        })
    }
}
