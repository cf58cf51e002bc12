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

use types::LedChip;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// Most LEDs of a strip.
pub const MOST_LEDS: usize = 512;

/// Appends the bytes that show these colours, with this brightness out of 31.
pub fn encode(chip: LedChip, colours: &[Colour], brightness: u8, wire: &mut Vec<u8>) {
    match chip {
        LedChip::Apa102 => apa102::encode(colours, brightness, wire),
        LedChip::Ws2812 => ws2812::encode(colours, brightness, wire),
    }
}

/// Speed of the wire, bit/s.
#[must_use]
pub fn speed(chip: LedChip) -> u32 {
    match chip {
        LedChip::Apa102 => 4_000_000,
        LedChip::Ws2812 => ws2812::SPEED,
    }
}
