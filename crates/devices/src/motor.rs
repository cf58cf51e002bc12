//! DC motors behind a digital-to-analogue converter, with absolute encoders: words on the wire, and
//! the velocity of a wheel; without I/O or clock.
//!
//! | module | contents |
//! |---|---|
//! | [`as5045`] | words of ams' AS5045 |
//! | [`wheel`] | a wheel: position, velocity, output, and conditions that stop it |

pub mod as5045;
pub mod wheel;

use types::DacChip;

pub use wheel::{Fault, Wheel, WheelSettings};

/// Speed of the wire, bit/s; the part takes up to 20 Mbit/s.
pub const MCP49X2_SPEED: u32 = 1_000_000;

/// Word that sets a channel, 0 or 1, to a share of its range, -1 to 1: the middle of the range is
/// 0. The word is sent high byte first, in mode 0, with the part selected for these 16 bits.
///
/// Bit 15 is the channel; bit 14 clear, the reference is not buffered; bit 13 set, the gain is 1;
/// bit 12 set, the output is on. The number follows, 10 bits with two unused ones behind them, or
/// 12.
#[must_use]
pub fn mcp49x2_word(chip: DacChip, channel: usize, share: f64) -> [u8; 2] {
    let bits = match chip {
        DacChip::Mcp4912 => 10,
        DacChip::Mcp4922 => 12,
    };
    let middle = f64::from(1 << (bits - 1));
    // Not a number counts as 0.
    let share = if share.is_nan() { 0.0 } else { share.clamp(-1.0, 1.0) };
    let number = (middle + (share * (middle - 1.0)).round()) as u16;
    ((channel as u16 & 1) << 15 | 0b011 << 12 | number << (12 - bits)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_match_the_data_sheet() {
        for (chip, channel, share, expected) in [
            (DacChip::Mcp4922, 0, 0.0, 0b0011_1000_0000_0000_u16),
            (DacChip::Mcp4922, 1, 1.0, 0b1011_1111_1111_1111),
            (DacChip::Mcp4922, 1, -1.0, 0b1011_0000_0000_0001),
            // The number of ten bits is the middle, 512; its last bit is the word's bit 2.
            (DacChip::Mcp4912, 0, 0.0, 0b0011_1000_0000_0000),
            (DacChip::Mcp4912, 0, 1.0 / 511.0, 0b0011_1000_0000_0100),
            (DacChip::Mcp4912, 1, 1.0, 0b1011_1111_1111_1100),
            (DacChip::Mcp4912, 0, -7.0, 0b0011_0000_0000_0100),
            (DacChip::Mcp4912, 0, f64::NAN, 0b0011_1000_0000_0000),
        ] {
            assert_eq!(
                u16::from_be_bytes(mcp49x2_word(chip, channel, share)),
                expected,
                "{chip:?} {channel} {share}"
            );
        }
    }
}
