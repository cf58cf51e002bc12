//! Reading a SubDevice's SII over the bus, four or eight bytes at a time (ETG.1000.4, 6.11; ETG.2010).

use crate::register::sii_interface::{
    COMMAND_READ, CONTROL, STATUS_BUSY, STATUS_MISSING_ACKNOWLEDGE, STATUS_READS_8_BYTES,
};
use crate::wire::{read_u16, read_u32};

/// Bytes before the first category.
const HEADER_LENGTH: usize = 0x80;

/// Category type that ends the list.
const END_OF_CATEGORIES: u16 = 0xFFFF;

/// An EEPROM holds at most this: two address bytes of words.
const MAXIMUM_LENGTH: usize = 0x2_0000;

/// A missing acknowledge may be a passing fault: so many are borne in a row.
const ATTEMPTS: u8 = 3;

/// What to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiiRequest {
    /// Write these bytes to the control register: a read command and its word address.
    Command([u8; 6]),
    /// Read control, address and data: 14 bytes from the control register.
    Fetch,
}

impl SiiRequest {
    /// Register both requests go to.
    pub(super) const REGISTER: u16 = CONTROL;
    /// Bytes of a fetch: control, address, eight of data.
    pub(super) const FETCH_LENGTH: usize = 14;
}

/// How a fetched answer moved the reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SiiProgress {
    /// The EEPROM is still busy: fetch again a little later.
    Busy,
    /// More to read.
    More,
    /// All categories are in.
    Complete,
    /// The EEPROM does not answer at this word address.
    Failed {
        word_address: u32,
    },
}

/// The bytes read so far.
#[derive(Debug, Default)]
pub(super) struct SiiReader {
    bytes: Vec<u8>,
    commanded: bool,
    attempts: u8,
}

impl SiiReader {
    /// What to send next.
    pub(super) fn request(&self) -> SiiRequest {
        if self.commanded {
            return SiiRequest::Fetch;
        }
        let mut bytes = [0; 6];
        bytes[..2].copy_from_slice(&COMMAND_READ.to_le_bytes());
        bytes[2..].copy_from_slice(&self.word_address().to_le_bytes());
        SiiRequest::Command(bytes)
    }

    /// The command was taken.
    pub(super) fn commanded(&mut self) {
        self.commanded = true;
    }

    /// The 14 bytes of a fetch came back.
    pub(super) fn fetched(&mut self, answer: &[u8]) -> SiiProgress {
        let status = read_u16(answer, 0).unwrap_or(STATUS_BUSY);
        if status & STATUS_BUSY != 0 {
            return SiiProgress::Busy;
        }
        self.commanded = false;
        let wanted = self.word_address();
        let is_ours = read_u32(answer, 2) == Some(wanted);
        if status & STATUS_MISSING_ACKNOWLEDGE != 0 || !is_ours {
            self.attempts += 1;
            return if self.attempts < ATTEMPTS {
                SiiProgress::More
            } else {
                SiiProgress::Failed { word_address: wanted }
            };
        }
        self.attempts = 0;
        let length = if status & STATUS_READS_8_BYTES != 0 { 8 } else { 4 };
        self.bytes.extend_from_slice(&answer[6..6 + length]);
        if self.is_complete() { SiiProgress::Complete } else { SiiProgress::More }
    }

    /// What was read.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn word_address(&self) -> u32 {
        (self.bytes.len() / 2) as u32
    }

    /// Whether the end mark was read, or nothing but blank EEPROM follows.
    fn is_complete(&self) -> bool {
        let mut offset = HEADER_LENGTH;
        while let Some(kind) = read_u16(&self.bytes, offset) {
            if kind == END_OF_CATEGORIES {
                return true;
            }
            let Some(words) = read_u16(&self.bytes, offset + 2) else { break };
            offset += 4 + usize::from(words) * 2;
        }
        self.bytes.len() >= MAXIMUM_LENGTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image with one category of three words at the usual place.
    fn image() -> Vec<u8> {
        let mut image: Vec<u8> = (0..HEADER_LENGTH).map(|byte| byte as u8).collect();
        image.extend([10, 0, 3, 0, 1, 2, 3, 4, 5, 6, 0xFF, 0xFF, 0xFF, 0xFF]);
        image.resize(0x800, 0xFF);
        image
    }

    /// Answers as an ESC does, busy every other time.
    fn read(length: usize) -> Vec<u8> {
        let (image, mut reader, mut busy) = (image(), SiiReader::default(), false);
        loop {
            match reader.request() {
                SiiRequest::Command(_) => reader.commanded(),
                SiiRequest::Fetch => {
                    busy = !busy;
                    let word_address = reader.word_address();
                    let mut status = if length == 8 { STATUS_READS_8_BYTES } else { 0 };
                    status |= if busy { STATUS_BUSY } else { 0 };
                    let mut answer = status.to_le_bytes().to_vec();
                    answer.extend(word_address.to_le_bytes());
                    let start = word_address as usize * 2;
                    answer.extend_from_slice(&image[start..start + 8]);
                    match reader.fetched(&answer) {
                        SiiProgress::Complete => return reader.into_bytes(),
                        SiiProgress::Failed { .. } => panic!("the EEPROM answered"),
                        SiiProgress::Busy | SiiProgress::More => {}
                    }
                }
            }
        }
    }

    #[test]
    fn reading_ends_behind_the_last_category() {
        for length in [4, 8] {
            let bytes = read(length);
            assert_eq!(bytes, image()[..bytes.len()]);
            assert!((HEADER_LENGTH + 12..HEADER_LENGTH + 12 + 8).contains(&bytes.len()));
        }
    }

    #[test]
    fn a_missing_acknowledge_fails_after_three_attempts_and_names_the_word() {
        let mut reader = SiiReader::default();
        let mut answer = STATUS_MISSING_ACKNOWLEDGE.to_le_bytes().to_vec();
        answer.resize(14, 0);
        assert_eq!(reader.fetched(&answer), SiiProgress::More);
        assert_eq!(reader.fetched(&answer), SiiProgress::More);
        assert_eq!(reader.fetched(&answer), SiiProgress::Failed { word_address: 0 });
    }
}
