//! Reading a SubDevice's SII over the bus, four or eight bytes at a time (ETG.1000.4, 6.11;
//! ETG.2010).

use alloc::boxed::Box;
use core::time::Duration;

use crate::register::sii_interface::{
    COMMAND_READ, CONTROL, STATUS_BUSY, STATUS_MISSING_ACKNOWLEDGE, STATUS_READS_8_BYTES,
};
use crate::sii;
use crate::time::Instant;
use crate::wire::{read_u16, read_u32};

use super::error::SubDeviceError;
use super::limits;
use super::outline::Outline;

/// Datagram to send next.
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

/// Progress made by a fetched answer.
#[derive(Debug)]
pub(super) enum SiiProgress {
    /// The EEPROM is still busy: fetch again a little later.
    Busy,
    /// More to read.
    More,
    /// All categories are in.
    Complete,
}

/// The EEPROM interface, and the image that grows out of it, or its outline.
#[derive(Debug, Default)]
pub(super) struct SiiReader {
    contents: Contents,
    /// Since when the answer to a read command is waited for.
    commanded: Option<Instant>,
    /// Time the reads before were seen busy.
    was_busy: Duration,
    /// When it was seen busy last.
    busy_at: Instant,
    attempts: u8,
}

#[derive(Debug)]
enum Contents {
    Image(Box<sii::Reader>),
    Outline(Outline),
}

impl Default for Contents {
    fn default() -> Self {
        Self::Image(Box::default())
    }
}

impl SiiReader {
    /// Reads an outline, in which nothing is allocated.
    pub(super) fn of_outline() -> Self {
        Self {
            contents: Contents::Outline(Outline::default()),
            commanded: None,
            was_busy: Duration::ZERO,
            busy_at: Instant::EPOCH,
            attempts: 0,
        }
    }

    /// The outline, if it is one.
    pub(super) fn outline(&self) -> Option<&Outline> {
        match &self.contents {
            Contents::Image(_) => None,
            Contents::Outline(outline) => Some(outline),
        }
    }

    /// Datagram to send next.
    pub(super) fn request(&self) -> SiiRequest {
        if self.commanded.is_some() {
            return SiiRequest::Fetch;
        }
        let mut bytes = [0; 6];
        bytes[..2].copy_from_slice(&COMMAND_READ.to_le_bytes());
        bytes[2..].copy_from_slice(&self.word_address().to_le_bytes());
        SiiRequest::Command(bytes)
    }

    /// The command was taken.
    pub(super) fn commanded(&mut self, now: Instant) {
        self.commanded = Some(now);
    }

    /// Puts off when it is given up.
    pub(super) fn put_off(&mut self, by: Duration) {
        self.commanded = self.commanded.map(|since| since + by);
    }

    /// The 14 bytes of a fetch came back.
    pub(super) fn fetched(&mut self, now: Instant, answer: &[u8]) -> Result<SiiProgress, SubDeviceError> {
        let status = read_u16(answer, 0).unwrap_or(STATUS_BUSY);
        let word_address = self.word_address();
        if status & STATUS_BUSY != 0 {
            let within = self.commanded.map_or(Duration::ZERO, |since| now.since(since));
            let is_stuck = within >= limits::SII_BUSY || self.was_busy + within >= limits::SII_BUSY_IN_ALL;
            let stuck = SubDeviceError::SiiBusy { word_address, within: self.was_busy + within };
            self.busy_at = now;
            return if is_stuck { Err(stuck) } else { Ok(SiiProgress::Busy) };
        }
        if let Some(since) = self.commanded.take() {
            self.was_busy += self.busy_at.since(since);
        }
        let is_ours = read_u32(answer, 2) == Some(word_address);
        if status & STATUS_MISSING_ACKNOWLEDGE != 0 || !is_ours {
            self.attempts += 1;
            let silent = Err(SubDeviceError::SiiSilent { word_address });
            return if self.attempts < limits::SII_ATTEMPTS { Ok(SiiProgress::More) } else { silent };
        }
        self.attempts = 0;
        let length = if status & STATUS_READS_8_BYTES != 0 { 8 } else { 4 };
        let words = &answer[6..6 + length];
        match &mut self.contents {
            Contents::Image(image) => image.supply(words),
            Contents::Outline(outline) => outline.supply(words),
        }
        .map_err(SubDeviceError::Sii)?;
        Ok(if self.next_word().is_some() { SiiProgress::More } else { SiiProgress::Complete })
    }

    /// The image of the bytes read.
    pub(super) fn finish(self) -> Result<sii::Image, SubDeviceError> {
        match self.contents {
            Contents::Image(image) => *image,
            Contents::Outline(_) => sii::Reader::new(),
        }
        .finish()
        .map_err(SubDeviceError::Sii)
    }

    fn next_word(&self) -> Option<u32> {
        match &self.contents {
            Contents::Image(image) => image.next_word(),
            Contents::Outline(outline) => outline.next_word(),
        }
    }

    fn word_address(&self) -> u32 {
        self.next_word().unwrap_or(0)
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
        let now = Instant::EPOCH;
        loop {
            match reader.request() {
                SiiRequest::Command(_) => reader.commanded(now),
                SiiRequest::Fetch => {
                    busy = !busy;
                    let word_address = reader.word_address();
                    let mut status = if length == 8 { STATUS_READS_8_BYTES } else { 0 };
                    status |= if busy { STATUS_BUSY } else { 0 };
                    let mut answer = status.to_le_bytes().to_vec();
                    answer.extend(word_address.to_le_bytes());
                    let start = word_address as usize * 2;
                    answer.extend_from_slice(&image[start..start + 8]);
                    if let SiiProgress::Complete = reader.fetched(now, &answer).unwrap() {
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
    fn missing_acknowledge_fails_after_three_attempts() {
        let mut reader = SiiReader::default();
        let mut answer = STATUS_MISSING_ACKNOWLEDGE.to_le_bytes().to_vec();
        answer.resize(14, 0);
        let mut fetched = || reader.fetched(Instant::EPOCH, &answer);
        assert!(fetched().is_ok());
        assert!(fetched().is_ok());
        assert_eq!(fetched().unwrap_err(), SubDeviceError::SiiSilent { word_address: 0 });
    }

    fn answer(reader: &SiiReader, status: u16) -> Vec<u8> {
        let mut answer = (status | STATUS_READS_8_BYTES).to_le_bytes().to_vec();
        answer.extend(reader.word_address().to_le_bytes());
        answer.resize(14, 0x33);
        answer
    }

    #[test]
    fn one_read_may_be_busy_for_a_second() {
        let mut reader = SiiReader::default();
        let since = Instant::from_nanos(77);
        reader.commanded(since);
        let busy = answer(&reader, STATUS_BUSY);
        assert!(reader.fetched(since + (limits::SII_BUSY - Duration::from_nanos(1)), &busy).is_ok());
        let stuck = SubDeviceError::SiiBusy { word_address: 0, within: limits::SII_BUSY };
        assert_eq!(reader.fetched(since + limits::SII_BUSY, &busy).unwrap_err(), stuck);
    }

    #[test]
    fn an_eeprom_that_is_slow_with_every_read_is_given_up_too() {
        let (mut reader, mut now) = (SiiReader::default(), Instant::EPOCH);
        for _ in 0..8 {
            reader.commanded(now);
            now = now + limits::SII_BUSY * 2 / 3;
            let (busy, ready) = (answer(&reader, STATUS_BUSY), answer(&reader, 0));
            match reader.fetched(now, &busy) {
                Ok(_) => drop(reader.fetched(now, &ready).unwrap()),
                Err(error) => {
                    let SubDeviceError::SiiBusy { within, .. } = error else { panic!("{error}") };
                    assert!(within >= limits::SII_BUSY_IN_ALL, "{within:?}");
                    return;
                }
            }
        }
        panic!("never given up after {now:?}");
    }
}
