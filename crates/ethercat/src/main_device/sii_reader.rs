//! Reading a SubDevice's SII over the bus, four or eight bytes at a time (ETG.1000.4, 6.11; ETG.2010).

use crate::register::sii_interface::{
    COMMAND_READ, CONTROL, STATUS_BUSY, STATUS_MISSING_ACKNOWLEDGE, STATUS_READS_8_BYTES,
};
use crate::sii;
use crate::wire::{read_u16, read_u32};

use super::error::SubDeviceError;

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
#[derive(Debug)]
pub(super) enum SiiProgress {
    /// The EEPROM is still busy: fetch again a little later.
    Busy,
    /// More to read.
    More,
    /// All categories are in.
    Complete,
}

/// The EEPROM interface, and the image that grows out of it.
#[derive(Debug, Default)]
pub(super) struct SiiReader {
    image: sii::Reader,
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
    pub(super) fn fetched(&mut self, answer: &[u8]) -> Result<SiiProgress, SubDeviceError> {
        let status = read_u16(answer, 0).unwrap_or(STATUS_BUSY);
        if status & STATUS_BUSY != 0 {
            return Ok(SiiProgress::Busy);
        }
        self.commanded = false;
        let word_address = self.word_address();
        let is_ours = read_u32(answer, 2) == Some(word_address);
        if status & STATUS_MISSING_ACKNOWLEDGE != 0 || !is_ours {
            self.attempts += 1;
            let silent = Err(SubDeviceError::SiiSilent { word_address });
            return if self.attempts < ATTEMPTS { Ok(SiiProgress::More) } else { silent };
        }
        self.attempts = 0;
        let length = if status & STATUS_READS_8_BYTES != 0 { 8 } else { 4 };
        self.image.supply(&answer[6..6 + length]).map_err(SubDeviceError::Sii)?;
        Ok(if self.image.next_word().is_some() { SiiProgress::More } else { SiiProgress::Complete })
    }

    /// What was read.
    pub(super) fn finish(self) -> Result<sii::Image, SubDeviceError> {
        self.image.finish().map_err(SubDeviceError::Sii)
    }

    fn word_address(&self) -> u32 {
        self.image.next_word().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sii::{Builder, Identity};

    fn image() -> Vec<u8> {
        let identity = Identity { vendor_id: 2, product_code: 3, revision: 4, serial: 5 };
        let mut image = Builder::new(identity, "a drive").build().emit();
        image.extend([0xFF; 8]);
        image
    }

    /// Answers as an ESC does, busy every other time.
    fn read(length: usize) -> sii::Image {
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
                    if let SiiProgress::Complete = reader.fetched(&answer).unwrap() {
                        return reader.finish().unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn both_kinds_of_eeprom_interface_give_the_same_image() {
        assert_eq!(read(4).name(), "a drive");
        assert_eq!(read(4), read(8));
    }

    #[test]
    fn a_missing_acknowledge_fails_after_three_attempts_and_names_the_word() {
        let mut reader = SiiReader::default();
        let mut answer = STATUS_MISSING_ACKNOWLEDGE.to_le_bytes().to_vec();
        answer.resize(14, 0);
        assert!(reader.fetched(&answer).is_ok());
        assert!(reader.fetched(&answer).is_ok());
        assert_eq!(reader.fetched(&answer).unwrap_err(), SubDeviceError::SiiSilent { word_address: 0 });
    }
}
