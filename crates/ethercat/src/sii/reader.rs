//! Reading an SII a few bytes at a time, as the ESC's SII interface gives them.

use alloc::vec::Vec;

use super::category::{Category, HEADER_LENGTH};
use super::image::is_repeated;
use super::{FIRST_CATEGORY, Header, Image, SiiError, category_type};
use crate::wire::read_u16;

/// Categories at most: the standard has about a dozen kinds, vendors add a few.
const MAXIMUM_CATEGORIES: usize = 64;

/// Most bytes of categories that are read. An EEPROM may claim 8 MiB; defined categories take 1 to
/// 4 KiB, and reading 16 KiB takes two seconds.
const MAXIMUM_LENGTH: usize = 16 * 1024;

/// Assembles an [`Image`] from reads of 4 or 8 bytes. Skips undefined categories, and repeated ones
/// of which the first counts. Reading is bounded, whatever the EEPROM holds.
///
/// ```
/// use onbeat_ethercat::sii::{Builder, Identity, Reader};
///
/// let eeprom = Builder::new(Identity::default(), "six-axis").build().emit();
/// let mut reader = Reader::new();
/// while let Some(word) = reader.next_word() {
///     let at = usize::try_from(word).unwrap() * 2;
///     reader.supply(&eeprom[at..at + 8]).unwrap();
/// }
/// assert_eq!(reader.finish().unwrap().name(), "six-axis");
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    /// Bytes of the part being collected, without gaps.
    part: Vec<u8>,
    /// Word address of the part's first byte.
    start: u32,
    stage: ReaderStage,
    header: Option<Header>,
    categories: Vec<Category>,
    /// Category headers read.
    seen: usize,
    /// Bytes of the categories read, and of the one being read.
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderStage {
    Header,
    CategoryHeader,
    Category { kind: u16, length: usize },
    Done,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// Nothing read yet.
    #[must_use]
    pub fn new() -> Self {
        let part = Vec::with_capacity(Header::LENGTH);
        let (stage, categories) = (ReaderStage::Header, Vec::new());
        Self { part, start: 0, stage, header: None, categories, seen: 0, length: 0 }
    }

    /// The word address to read next, or `None` when the image is complete. Poll again after
    /// [`Reader::supply`].
    #[must_use]
    pub fn next_word(&self) -> Option<u32> {
        (self.stage != ReaderStage::Done).then_some(self.start + (self.part.len() / 2) as u32)
    }

    /// Takes the bytes read at [`Reader::next_word`]: an even number, usually 4 or 8.
    ///
    /// # Errors
    /// [`SiiError::Checksum`], [`SiiError::RecordTruncated`], or [`SiiError::TooLong`] if the
    /// categories lead past the end of the EEPROM, as in one that was never programmed;
    /// [`SiiError::TooManyCategories`] or [`SiiError::TooLarge`] if they do not end. Reading then
    /// ends.
    pub fn supply(&mut self, bytes: &[u8]) -> Result<(), SiiError> {
        self.part.extend_from_slice(bytes);
        let result = self.digest();
        if result.is_err() {
            self.stage = ReaderStage::Done;
        }
        result
    }

    /// The header, as soon as it is read.
    #[must_use]
    pub const fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The image, with the categories that have a meaning.
    ///
    /// # Errors
    /// [`SiiError::HeaderTruncated`] if not even the header was read, [`SiiError::NoEnd`] if there
    /// is more to read.
    pub fn finish(self) -> Result<Image, SiiError> {
        let found = self.start as usize * 2 + self.part.len();
        match (self.header, self.stage) {
            (Some(header), ReaderStage::Done) => Ok(Image { header, categories: self.categories }),
            (Some(_), _) => Err(SiiError::NoEnd { found }),
            (None, _) => Err(SiiError::HeaderTruncated { expected: Header::LENGTH, found }),
        }
    }

    /// Processes the collected bytes until more are needed.
    fn digest(&mut self) -> Result<(), SiiError> {
        loop {
            let needed = match self.stage {
                ReaderStage::Header => Header::LENGTH,
                // The end mark is one word; nothing needs to stand behind it.
                ReaderStage::CategoryHeader if read_u16(&self.part, 0) == Some(category_type::END) => 2,
                ReaderStage::CategoryHeader => HEADER_LENGTH,
                ReaderStage::Category { length, .. } => length,
                ReaderStage::Done => return Ok(()),
            };
            if self.part.len() < needed {
                return Ok(());
            }
            self.stage = self.finish_part(needed)?;
            self.part.drain(..needed);
            self.start += (needed / 2) as u32;
            self.skip()?;
        }
    }

    /// Gives the first `needed` bytes of the part their meaning.
    fn finish_part(&mut self, needed: usize) -> Result<ReaderStage, SiiError> {
        match self.stage {
            ReaderStage::Header => {
                let header = Header::parse(&self.part)?;
                header.check()?;
                self.header = Some(header);
                Ok(ReaderStage::CategoryHeader)
            }
            ReaderStage::CategoryHeader => Ok(match (read_u16(&self.part, 0), read_u16(&self.part, 2)) {
                (Some(kind), Some(words)) if kind != category_type::END => {
                    ReaderStage::Category { kind, length: usize::from(words) * 2 }
                }
                _ => ReaderStage::Done,
            }),
            ReaderStage::Category { kind, .. } => {
                self.categories.push(Category::parse(kind, &self.part[..needed])?);
                Ok(ReaderStage::CategoryHeader)
            }
            ReaderStage::Done => Ok(ReaderStage::Done),
        }
    }

    /// Jumps over a category that is not read, and checks that the next part lies in the EEPROM.
    fn skip(&mut self) -> Result<(), SiiError> {
        let ReaderStage::Category { kind, length } = self.stage else {
            return Ok(());
        };
        let limit = self.header.as_ref().map_or(u32::from(FIRST_CATEGORY), |it| (it.size() / 2) as u32);
        let end = self.start + (length / 2) as u32;
        // The end mark may be missing where the categories fill the EEPROM to the last word.
        if end > limit {
            return Err(SiiError::TooLong { limit });
        }
        self.seen += 1;
        if self.seen > MAXIMUM_CATEGORIES {
            return Err(SiiError::TooManyCategories { limit: MAXIMUM_CATEGORIES });
        }
        if !Category::is_known(kind) || is_repeated(&self.categories, kind) {
            let there = length.min(self.part.len());
            self.part.drain(..there);
            self.start = end;
            self.stage = ReaderStage::CategoryHeader;
            return Ok(());
        }
        self.length += length;
        if self.length > MAXIMUM_LENGTH {
            return Err(SiiError::TooLarge { found: self.length, limit: MAXIMUM_LENGTH });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sii::{Builder, Identity};

    fn eeprom() -> Vec<u8> {
        let mut image = Builder::new(Identity::default(), "a name").build();
        image.categories.insert(0, Category::Other { kind: 0x0800, data: vec![7; 300] });
        image.categories.insert(1, Category::Other { kind: 0x0801, data: vec![] });
        image.emit()
    }

    fn read(eeprom: &[u8], chunk: usize) -> (Result<Image, SiiError>, usize) {
        let (mut reader, mut reads) = (Reader::new(), 0);
        while let Some(word) = reader.next_word() {
            let at = word as usize * 2;
            let end = eeprom.len().min(at + chunk);
            if at >= end {
                break;
            }
            reads += 1;
            if let Err(error) = reader.supply(&eeprom[at..end]) {
                return (Err(error), reads);
            }
        }
        (reader.finish(), reads)
    }

    #[test]
    fn read_size_does_not_change_the_image() {
        let eeprom = eeprom();
        let mut expected = Image::parse(&eeprom).unwrap();
        expected.categories.retain(|category| Category::is_known(category.kind()));
        for chunk in [2, 4, 8, 64] {
            assert_eq!(read(&eeprom, chunk).0.as_ref(), Ok(&expected), "{chunk} bytes a read");
        }
        let used = eeprom.len() - eeprom.iter().rev().take_while(|&&byte| byte == 0xFF).count();
        assert!(read(&eeprom, 4).1 < (used - 290) / 4 + 4);
    }

    #[test]
    fn an_eeprom_without_an_end_is_an_error() {
        let mut eeprom = eeprom();
        eeprom.truncate(600);
        assert_eq!(read(&eeprom[..130], 4).0, Err(SiiError::NoEnd { found: 130 }));
        assert_eq!(read(&eeprom[..64], 4).0, Err(SiiError::HeaderTruncated { expected: 128, found: 64 }));
        eeprom[130..132].copy_from_slice(&[0xFE, 0xFF]);
        assert_eq!(read(&eeprom, 8).0, Err(SiiError::TooLong { limit: 1024 }));
    }

    #[test]
    fn eeprom_size_word_does_not_bind_the_reader() {
        let mut endless = eeprom()[..Header::LENGTH].to_vec();
        endless[0x3E * 2..][..2].copy_from_slice(&[0xFF, 0xFF]);
        let mut with = |category: &[u8]| {
            endless.truncate(Header::LENGTH);
            while endless.len() < 1 << 18 {
                endless.extend_from_slice(category);
            }
            read(&endless, 4)
        };
        let limit = MAXIMUM_CATEGORIES;
        let (result, reads) = with(&[1, 8, 0, 0]);
        assert_eq!(result, Err(SiiError::TooManyCategories { limit }));
        assert!(reads <= 32 + limit + 1, "{reads}");
        let strings = [&[10, 0, 1, 0][..], &[0, 0]].concat();
        assert_eq!(with(&strings).0, Err(SiiError::TooManyCategories { limit }));
        let pdos = [&[50, 0, 0, 8][..], &[0; 4096]].concat();
        let (limit, found) = (MAXIMUM_LENGTH, MAXIMUM_LENGTH + 4096);
        assert_eq!(with(&pdos).0, Err(SiiError::TooLarge { found, limit }));
    }
}
