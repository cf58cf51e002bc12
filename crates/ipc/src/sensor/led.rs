use super::{HEAD, Head, SensorError};
use crate::bytes::Writer;

/// State of a LED strip. After the head: pattern (8 bits); red, green, blue (8 bits each); number
/// of LEDs (16 bits); 2 bytes of 0; frames shown since the start (32 bits).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Led {
    /// Head; its time stamp is that of the last frame taken by the strip.
    pub head: Head,
    /// Pattern shown.
    pub pattern: Pattern,
    /// Colour: red, green, blue.
    pub colour: [u8; 3],
    /// Number of LEDs.
    pub leds: u16,
    /// Number of frames the strip has taken.
    pub frames: u32,
}

/// Request to a LED strip, a message to its port. After a head with ignored stamps: pattern (8
/// bits); red, green, blue (8 bits each); time of one round (32 bits, ms).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedRequest {
    /// Pattern to show.
    pub pattern: Pattern,
    /// Colour: red, green, blue.
    pub colour: [u8; 3],
    /// Time of one round of the pattern, ms; 0 is taken as 1.
    pub round_ms: u32,
}

/// Pattern of a strip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Pattern {
    /// All LEDs off.
    #[default]
    Dark = 0,
    /// All LEDs on in one colour.
    Steady = 1,
    /// On and off, half a round each.
    Blink = 2,
    /// Brightness rising and falling.
    Breathe = 3,
    /// A light with a tail that runs along the strip once a round.
    Chase = 4,
}

impl Pattern {
    /// All patterns, by their numbers.
    pub const ALL: [Self; 5] = [Self::Dark, Self::Steady, Self::Blink, Self::Breathe, Self::Chase];

    fn from_number(number: u8) -> Result<Self, SensorError> {
        let known = Self::ALL.get(usize::from(number)).copied();
        known.ok_or(SensorError::Value { field: "the pattern", value: number.into() })
    }
}

impl Led {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 12;
    const KIND: u8 = 4;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`Led::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        self.head.write(Self::KIND, &mut writer);
        writer.u8(self.pattern as u8);
        self.colour.iter().for_each(|&value| writer.u8(value));
        writer.u16(self.leds);
        writer.u16(0);
        writer.u32(self.frames);
        Some(writer.finish())
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (head, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        let pattern = Pattern::from_number(reader.u8())?;
        let colour = [reader.u8(), reader.u8(), reader.u8()];
        let leds = reader.u16();
        reader.u16();
        Ok(Self { head, pattern, colour, leds, frames: reader.u32() })
    }
}

impl LedRequest {
    /// Bytes of a message.
    pub const SIZE: usize = HEAD + 8;
    const KIND: u8 = 5;

    /// Encodes the message at the front of `bytes`; returns its length, or `None` if there is less
    /// space than [`LedRequest::SIZE`].
    pub fn encode(&self, bytes: &mut [u8]) -> Option<usize> {
        let mut writer = Writer::new(bytes, Self::SIZE)?;
        Head::default().write(Self::KIND, &mut writer);
        writer.u8(self.pattern as u8);
        self.colour.iter().for_each(|&value| writer.u8(value));
        writer.u32(self.round_ms);
        Some(writer.finish())
    }

    /// Decodes a message; allocates nothing, because it runs on the real-time side.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, SensorError> {
        let (_, mut reader) = Head::read_exactly(bytes, Self::KIND, Self::SIZE)?;
        let pattern = Pattern::from_number(reader.u8())?;
        let colour = [reader.u8(), reader.u8(), reader.u8()];
        Ok(Self { pattern, colour, round_ms: reader.u32() })
    }
}
