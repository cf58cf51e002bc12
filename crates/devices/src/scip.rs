//! SCIP 2.0, the protocol of Hokuyo's laser range finders: bytes in, replies out, without I/O or
//! clock.
//!
//! | module | contents |
//! |---|---|
//! | [`command`] | commands of a host: VV, PP, II, BM, QT, RS, TM, GD/GS, MD/MS, SCIP2.0 |
//! | [`reply`] | replies of a sensor, checked |
//! | [`stream`] | replies from a stream of bytes, resynchronising after garbage |
//! | [`session`] | from a sensor in unknown state to a stream of scans |
//! | [`sensor_clock`] | the sensor's time stamps on the host's clock |
//!
//! Source: Hokuyo, *Communication Protocol Specification for SCIP2.0 Standard*, C-42-03320B;
//! sections are cited as (n). Not supported: SS, CR, HS and DB (bit rate, motor speed, sensitivity,
//! malfunction simulation), multi-echo extensions of later models (ND, HD, ME), and SCIP 1.1 except
//! for the command that leaves it.

pub mod command;
pub mod reply;
pub mod sensor_clock;
pub mod session;
pub mod stream;

pub use command::{Command, Echo, Encoding, Sector, Symbol, TimeControl};
pub use reply::{Content, Parameters, Reply, ReplyError, Status, Version};
pub use session::{Event, Scanned, Session, SessionError};
pub use stream::Replies;

/// Most characters of a number: 12, 18 or 24 bits, six per character, highest first.
pub const LONGEST: usize = 4;

/// Decodes a number from characters of 30h to 6Fh.
///
/// # Errors
/// The first invalid byte, or `None` for a wrong number of characters.
pub fn decode(characters: &[u8]) -> Result<u32, Option<u8>> {
    if characters.is_empty() || characters.len() > LONGEST {
        return Err(None);
    }
    characters.iter().try_fold(0, |value, &character| {
        let bits = character.checked_sub(0x30).filter(|&bits| bits < 64).ok_or(Some(character))?;
        Ok(value << 6 | u32::from(bits))
    })
}

/// The check character of a line: the lowest six bits of the sum of its bytes, plus 30h.
#[must_use]
pub fn sum(line: &[u8]) -> u8 {
    let sum = line.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte));
    (sum & 0x3f) + 0x30
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples (6.1) to (6.3): 1 234, 5 432 and 16 000 000.
    #[test]
    fn the_numbers_of_the_specification_are_read() {
        assert_eq!(decode(b"CB"), Ok(1_234));
        assert_eq!(decode(b"1Dh"), Ok(5_432));
        assert_eq!(decode(b"m2@0"), Ok(16_000_000));
        assert_eq!(decode(b"oooo"), Ok((1 << 24) - 1));
    }

    #[test]
    fn what_is_no_number_is_named() {
        assert_eq!(decode(b"0/"), Err(Some(b'/')));
        assert_eq!(decode(b"p0"), Err(Some(b'p')));
        assert_eq!(decode(b""), Err(None));
        assert_eq!(decode(b"00000"), Err(None));
    }

    #[test]
    fn sums_match_recorded_lines() {
        assert_eq!([sum(b"00"), sum(b"99"), sum(b"0E")], [b'P', b'b', b'e']);
        assert_eq!(sum(b"PROT:SCIP 2.0"), b'N');
        assert_eq!(sum(b"VEND:Hokuyo Automatic Co.,Ltd."), b'[');
    }
}
