//! A whole SII image.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use super::category::{Category, HEADER_LENGTH};
use super::record::{DistributedClock, FmmuUse, General, SiiPdo, SiiSyncManager};
use super::{Header, SiiError, category_type};
use crate::pdo::{Pdo, PdoMapping};
use crate::wire::read_u16;

/// A whole SII image: header, and categories in the order they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Words 0x00 to 0x3F.
    pub header: Header,
    /// All categories up to the end mark.
    pub categories: Vec<Category>,
}

impl Image {
    /// Parses an image and ignores the bytes behind the end mark. Of categories that make sense
    /// only once the first counts ([`Category::is_single`]); further ones stay bytes.
    ///
    /// # Errors
    /// A [`SiiError`] that names the place, the expected value and the one found: an image cut
    /// short, a wrong checksum, a category that ends inside a record.
    pub fn parse(image: &[u8]) -> Result<Self, SiiError> {
        let header = Header::parse(image)?;
        header.check()?;
        let mut categories: Vec<Category> = Vec::new();
        let mut offset = Header::LENGTH;
        loop {
            let no_end = SiiError::NoEnd { found: image.len() };
            let kind = read_u16(image, offset).ok_or(no_end)?;
            if kind == category_type::END {
                return Ok(Self { header, categories });
            }
            let length = usize::from(read_u16(image, offset + 2).ok_or(no_end)?) * 2;
            let (start, end) = (offset + HEADER_LENGTH, offset + HEADER_LENGTH + length);
            let found = image.len();
            let truncated = SiiError::CategoryTruncated { kind, offset, expected: end, found };
            let data = image.get(start..end).ok_or(truncated)?;
            categories.push(match is_repeated(&categories, kind) {
                true => Category::Other { kind, data: data.to_vec() },
                false => Category::parse(kind, data)?,
            });
            offset = end;
        }
    }

    /// The image as an EEPROM holds it: as long as the header's size word says, at least as long as
    /// the categories need, padded with 0xFF.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut image = self.header.bytes().to_vec();
        self.categories.iter().for_each(|category| category.emit(&mut image));
        image.extend_from_slice(&category_type::END.to_le_bytes());
        let length = self.header.size().max(image.len());
        image.resize(length, 0xFF);
        image
    }

    /// String `index`, counted from 1, read as UTF-8 or else as Latin-1; empty for 0 or none.
    #[must_use]
    pub fn string(&self, index: u8) -> String {
        let strings = self.categories.iter().find_map(|category| match category {
            Category::Strings(strings) => Some(strings),
            _ => None,
        });
        let bytes = usize::from(index).checked_sub(1).and_then(|index| strings?.get(index));
        bytes.map_or_else(String::new, |bytes| match core::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => bytes.iter().map(|&byte| char::from(byte)).collect(),
        })
    }

    /// The general category.
    #[must_use]
    pub fn general(&self) -> Option<&General> {
        self.categories.iter().find_map(|category| match category {
            Category::General(general) => Some(general),
            _ => None,
        })
    }

    /// The device's name; empty if there is none.
    #[must_use]
    pub fn name(&self) -> String {
        self.general().map_or_else(String::new, |general| self.string(general.name))
    }

    /// The order number; empty if there is none.
    #[must_use]
    pub fn order(&self) -> String {
        self.general().map_or_else(String::new, |general| self.string(general.order))
    }

    /// The group's name; empty if there is none.
    #[must_use]
    pub fn group(&self) -> String {
        self.general().map_or_else(String::new, |general| self.string(general.group))
    }

    /// Purpose of each FMMU, in order.
    #[must_use]
    pub fn fmmus(&self) -> &[FmmuUse] {
        let found = self.categories.iter().find_map(|category| match category {
            Category::Fmmus(fmmus) => Some(fmmus.as_slice()),
            _ => None,
        });
        found.unwrap_or(&[])
    }

    /// The SyncManagers, in order.
    #[must_use]
    pub fn sync_managers(&self) -> &[SiiSyncManager] {
        let found = self.categories.iter().find_map(|category| match category {
            Category::SyncManagers(sync_managers) => Some(sync_managers.as_slice()),
            _ => None,
        });
        found.unwrap_or(&[])
    }

    /// The operation modes of the distributed clock; the first is the default.
    #[must_use]
    pub fn distributed_clocks(&self) -> &[DistributedClock] {
        let found = self.categories.iter().find_map(|category| match category {
            Category::DistributedClocks(clocks) => Some(clocks.as_slice()),
            _ => None,
        });
        found.unwrap_or(&[])
    }

    /// All TxPDOs, assigned by default or not.
    #[must_use]
    pub fn inputs(&self) -> Vec<Pdo> {
        self.pdos(|category| match category {
            Category::TxPdos(pdos) => Some(pdos),
            _ => None,
        })
    }

    /// All RxPDOs, assigned by default or not.
    #[must_use]
    pub fn outputs(&self) -> Vec<Pdo> {
        self.pdos(|category| match category {
            Category::RxPdos(pdos) => Some(pdos),
            _ => None,
        })
    }

    /// The PDOs assigned to a SyncManager by default, in the order they lie in the process image.
    #[must_use]
    pub fn default_mapping(&self) -> PdoMapping {
        let assigned = |pdos: Vec<Pdo>| {
            let mut pdos: Vec<_> = pdos.into_iter().filter(|pdo| pdo.sync_manager.is_some()).collect();
            // Within one SyncManager they keep their order.
            pdos.sort_by_key(|pdo| pdo.sync_manager);
            pdos
        };
        PdoMapping { outputs: assigned(self.outputs()), inputs: assigned(self.inputs()) }
    }

    /// Indices of the PDOs that it marks as samples, of oversampling terminals.
    #[must_use]
    pub fn samples(&self) -> Vec<u16> {
        let pdos = self.categories.iter().filter_map(|category| match category {
            Category::TxPdos(pdos) | Category::RxPdos(pdos) => Some(pdos),
            _ => None,
        });
        let marked = pdos.flatten().filter(|pdo| pdo.flags & SiiPdo::FLAG_SAMPLE != 0);
        marked.map(|pdo| pdo.index).collect()
    }

    fn pdos(&self, select: impl Fn(&Category) -> Option<&Vec<SiiPdo>>) -> Vec<Pdo> {
        let pdos = self.categories.iter().filter_map(select).flatten();
        pdos.map(|pdo| pdo.to_pdo(|index| self.string(index))).collect()
    }
}

/// True if `kind` makes sense once, and is among `categories` already.
pub(super) fn is_repeated(categories: &[Category], kind: u16) -> bool {
    let is_same = |it: &Category| it.kind() == kind && !matches!(it, Category::Other { .. });
    Category::is_single(kind) && categories.iter().any(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sii::{Builder, Identity};

    fn image() -> Vec<u8> {
        let identity = Identity { vendor_id: 2, product_code: 0x044C_2C52, revision: 1, serial: 7 };
        Builder::new(identity, "EK1100").build().emit()
    }

    #[test]
    fn every_cut_before_the_end_mark_is_an_error() {
        let image = image();
        let end = Header::LENGTH + image[Header::LENGTH..].windows(2).position(|w| w == [0xFF; 2]).unwrap();
        assert_eq!(
            Image::parse(&image[..100]).unwrap_err(),
            SiiError::HeaderTruncated { expected: 128, found: 100 }
        );
        for length in 0..end {
            assert!(Image::parse(&image[..length]).is_err(), "cut at {length}");
        }
        assert!(Image::parse(&image[..end + 2]).is_ok());
    }

    #[test]
    fn wrong_checksum_is_reported_unless_disabled() {
        let mut image = image();
        let right = image[14];
        image[14] ^= 0x55;
        let error = Image::parse(&image).unwrap_err();
        assert_eq!(error, SiiError::Checksum { expected: right, found: right ^ 0x55 });
        image[14..16].copy_from_slice(&super::super::CHECKSUM_DISABLED.to_le_bytes());
        assert!(Image::parse(&image).is_ok());
    }
}
