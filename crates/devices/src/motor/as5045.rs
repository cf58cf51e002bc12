//! Words of a magnetic encoder of 12 bits. Source: austriamicrosystems, *AS5045*, 8.1: the serial
//! interface and table 3. The AS5145 sends the same.

use std::fmt;

/// Speed of the wire, bit/s: the most that the part gives.
pub const SPEED: u32 = 1_000_000;

/// Angles of a turn.
pub const ANGLES: u16 = 4_096;

/// Bytes of a reading: a bit that is high before the first clock, 18 bits of the word, and what
/// follows. The clock idles high and the part changes its output with rising edges: mode 2.
pub const LENGTH: usize = 3;

/// Reason not to use a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The first bit is low, or no bit is.
    NoAnswer,
    /// The parity is odd.
    Parity,
    /// The offset compensation has not finished.
    Starting,
    /// The calculation of the angle has overflowed.
    Overflow,
    /// The magnetic field is beyond the range in which angles are right.
    Field,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAnswer => "no encoder answers",
            Self::Parity => "wrong parity",
            Self::Starting => "its offset compensation has not finished",
            Self::Overflow => "its angle has overflowed: is the magnet in its place",
            Self::Field => "its magnet is too near or too far",
        })
    }
}

/// Decodes a reading: the angle, from 0 to 4095.
///
/// # Errors
/// The part reports an invalid angle, or the reading does not come from this part.
pub fn angle(reading: [u8; LENGTH]) -> Result<u16, Invalid> {
    let bits = u32::from_be_bytes([0, reading[0], reading[1], reading[2]]);
    let word = bits >> 5 & 0x3_ffff;
    // A wire that idles at either level is no reading.
    if bits >> 23 == 0 || word == 0x3_ffff {
        return Err(Invalid::NoAnswer);
    }
    if word.count_ones() % 2 != 0 {
        return Err(Invalid::Parity);
    }
    let set = |bit: u32| word >> bit & 1 == 1;
    if !set(5) {
        return Err(Invalid::Starting);
    }
    if set(4) {
        return Err(Invalid::Overflow);
    }
    if set(3) {
        return Err(Invalid::Field);
    }
    Ok((word >> 6) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading with these flags OCF, COF, LIN, MagINC, MagDEC.
    fn reading(angle: u32, flags: u32) -> [u8; LENGTH] {
        let upper = angle << 5 | flags;
        let bits = 1 << 23 | ((upper << 1) | (upper.count_ones() % 2)) << 5;
        let [_, bytes @ ..] = bits.to_be_bytes();
        bytes
    }

    #[test]
    fn an_angle_is_taken_when_the_part_says_it_is_valid() {
        for value in [0, 1, 2_047, 2_048, 4_095] {
            for flags in [0b10000, 0b10010, 0b10001, 0b10011] {
                assert_eq!(angle(reading(value, flags)), Ok(value as u16), "{value} {flags:05b}");
            }
        }
        for (flags, why) in
            [(0, Invalid::Starting), (0b11000, Invalid::Overflow), (0b10111, Invalid::Field)]
        {
            assert_eq!(angle(reading(1_234, flags)), Err(why));
        }
    }

    #[test]
    fn flipped_bit_or_missing_encoder_gives_no_angle() {
        let whole = reading(1_234, 0b10000);
        for bit in 5..24 {
            let mut wrong = whole;
            wrong[2 - bit / 8] ^= 1 << (bit % 8);
            assert!(angle(wrong).is_err(), "bit {bit}: {:?}", angle(wrong));
        }
        assert_eq!(angle([0; 3]), Err(Invalid::NoAnswer));
        assert_eq!(angle([0xff; 3]), Err(Invalid::NoAnswer));
        // High before the first clock only, as a pull-up and a short circuit make it.
        assert_eq!(angle([0x80, 0, 0]), Err(Invalid::Starting));
    }
}
