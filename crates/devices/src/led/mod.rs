//! LED strips on an SPI bus: from colours to the bits on the wire, without I/O or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`apa102`] | strips with a clock line: APA102, SK9822 |
//! | [`ws2812`] | strips without a clock line: WS2812, SK6812; only the SPI's data line is used |
//! | [`pattern`] | colours of a pattern over time |

pub mod apa102;
pub mod pattern;
pub mod ws2812;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Most LEDs of a strip.
pub const MOST_LEDS: usize = 512;

/// Chip of a strip's LEDs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chip {
    /// APA102 or SK9822, with a clock line.
    #[default]
    Apa102,
    /// WS2812 or SK6812, without a clock line.
    Ws2812,
}

impl Chip {
    /// Appends the bytes that show these colours, with this brightness out of 31.
    pub fn encode(self, colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
        match self {
            Self::Apa102 => apa102::encode(colours, brightness, wire),
            Self::Ws2812 => ws2812::encode(colours, brightness, wire),
        }
    }

    /// Speed of the wire, bit/s.
    #[must_use]
    pub fn speed(self) -> u32 {
        match self {
            Self::Apa102 => 4_000_000,
            Self::Ws2812 => ws2812::SPEED,
        }
    }
}
