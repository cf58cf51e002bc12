//! LED strips on an SPI bus: from colours to the bits on the wire. No I/O, no clock.
//!
//! | module | what it holds |
//! |---|---|
//! | [`apa102`] | strips with a clock line: APA102, SK9822 |
//! | [`ws2812`] | strips without one: WS2812, SK6812; the SPI's data line alone is used |
//! | [`pattern`] | what a strip shows, over time |

pub mod apa102;
pub mod pattern;
pub mod ws2812;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// LEDs of a strip at most.
pub const MOST_LEDS: usize = 512;

/// What a strip is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Chip {
    /// With a clock line.
    #[default]
    Apa102,
    /// Without one.
    Ws2812,
}

impl Chip {
    /// What the strip is sent to show these colours, `brightness` of 31.
    pub fn encode(self, colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
        match self {
            Self::Apa102 => apa102::encode(colours, brightness, wire),
            Self::Ws2812 => ws2812::encode(colours, brightness, wire),
        }
    }

    /// Bits a second on the wire.
    #[must_use]
    pub fn speed(self) -> u32 {
        match self {
            Self::Apa102 => 4_000_000,
            Self::Ws2812 => ws2812::SPEED,
        }
    }
}
