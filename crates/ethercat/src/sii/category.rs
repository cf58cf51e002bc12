//! Categories: typed stretches of an SII image (ETG.1000.6, 5.4, Table 17 ff.).

use alloc::vec::Vec;

use super::SiiError;
use super::record::{DistributedClock, FmmuUse, General, SiiPdo, SiiPdoEntry, SiiSyncManager};
use crate::wire::read_u16;

/// Category types (ETG.1000.6, 5.4, Table 19; ETG.2010, Table 5).
pub mod category_type {
    /// Strings.
    pub const STRINGS: u16 = 10;
    /// Data types; not read.
    pub const DATA_TYPES: u16 = 20;
    /// General information.
    pub const GENERAL: u16 = 30;
    /// FMMUs.
    pub const FMMUS: u16 = 40;
    /// SyncManagers.
    pub const SYNC_MANAGERS: u16 = 41;
    /// More about FMMUs; kept as bytes.
    pub const FMMUS_EXTENDED: u16 = 42;
    /// Sync units; kept as bytes.
    pub const SYNC_UNITS: u16 = 43;
    /// TxPDOs: inputs.
    pub const TX_PDOS: u16 = 50;
    /// RxPDOs: outputs.
    pub const RX_PDOS: u16 = 51;
    /// Distributed clocks.
    pub const DISTRIBUTED_CLOCKS: u16 = 60;
    /// No more categories.
    pub const END: u16 = 0xFFFF;
}

/// Bytes before a category: type, and length in words.
pub(super) const HEADER_LENGTH: usize = 4;

/// One category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Category {
    /// Strings, in the vendor's encoding, each at most 255 bytes. Indices count from 1.
    Strings(Vec<Vec<u8>>),
    /// Names, CoE details, E-bus current.
    General(General),
    /// Purpose of each FMMU, in order.
    Fmmus(Vec<FmmuUse>),
    /// SyncManagers, in order.
    SyncManagers(Vec<SiiSyncManager>),
    /// Inputs.
    TxPdos(Vec<SiiPdo>),
    /// Outputs.
    RxPdos(Vec<SiiPdo>),
    /// Operation modes of the distributed clock; the first is the default.
    DistributedClocks(Vec<DistributedClock>),
    /// Anything else, as bytes.
    Other {
        /// Category type; 0x0001 to 0x0009 and 0x0800 ff. are the vendor's.
        kind: u16,
        /// An even number of bytes.
        data: Vec<u8>,
    },
}

impl Category {
    /// The category of type `kind` in `data`, the bytes behind its header.
    ///
    /// # Errors
    /// [`SiiError::RecordTruncated`].
    pub fn parse(kind: u16, data: &[u8]) -> Result<Self, SiiError> {
        Ok(match kind {
            category_type::STRINGS => Self::Strings(parse_strings(data)?),
            category_type::GENERAL => {
                let general = General::parse(data);
                let (expected, found) = (General::LENGTH, data.len());
                // Longer ones may come; to keep every byte, they stay bytes.
                match general {
                    Some(general) if found == expected => Self::General(general),
                    Some(_) => Self::Other { kind, data: data.to_vec() },
                    None => return Err(SiiError::RecordTruncated { kind, expected, found }),
                }
            }
            category_type::FMMUS => Self::Fmmus(data.iter().map(|&n| FmmuUse::from_number(n)).collect()),
            category_type::SYNC_MANAGERS => {
                Self::SyncManagers(records(kind, data, SiiSyncManager::LENGTH, SiiSyncManager::parse)?)
            }
            category_type::TX_PDOS => Self::TxPdos(parse_pdos(kind, data)?),
            category_type::RX_PDOS => Self::RxPdos(parse_pdos(kind, data)?),
            category_type::DISTRIBUTED_CLOCKS => {
                let clocks = records(kind, data, DistributedClock::LENGTH, DistributedClock::parse)?;
                Self::DistributedClocks(clocks)
            }
            _ => Self::Other { kind, data: data.to_vec() },
        })
    }

    /// The category's type.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        match self {
            Self::Strings(_) => category_type::STRINGS,
            Self::General(_) => category_type::GENERAL,
            Self::Fmmus(_) => category_type::FMMUS,
            Self::SyncManagers(_) => category_type::SYNC_MANAGERS,
            Self::TxPdos(_) => category_type::TX_PDOS,
            Self::RxPdos(_) => category_type::RX_PDOS,
            Self::DistributedClocks(_) => category_type::DISTRIBUTED_CLOCKS,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// True if [`Category::parse`] gives categories of type `kind` a meaning.
    #[must_use]
    pub const fn is_known(kind: u16) -> bool {
        use category_type::{DISTRIBUTED_CLOCKS, FMMUS, GENERAL, RX_PDOS, STRINGS, SYNC_MANAGERS, TX_PDOS};
        matches!(kind, STRINGS | GENERAL | FMMUS | SYNC_MANAGERS | TX_PDOS | RX_PDOS | DISTRIBUTED_CLOCKS)
    }

    /// True if only the first category of type `kind` counts. PDO categories add up.
    #[must_use]
    pub const fn is_single(kind: u16) -> bool {
        Self::is_known(kind) && !matches!(kind, category_type::TX_PDOS | category_type::RX_PDOS)
    }

    /// Appends the category with its header to `image`.
    pub(super) fn emit(&self, image: &mut Vec<u8>) {
        let start = image.len();
        image.extend_from_slice(&self.kind().to_le_bytes());
        image.extend_from_slice(&[0, 0]);
        match self {
            Self::Strings(strings) => emit_strings(strings, image),
            Self::General(general) => image.extend_from_slice(&general.emit()),
            Self::Fmmus(fmmus) => image.extend(fmmus.iter().map(|fmmu| fmmu.number())),
            Self::SyncManagers(list) => list.iter().for_each(|it| image.extend_from_slice(&it.emit())),
            Self::TxPdos(pdos) | Self::RxPdos(pdos) => emit_pdos(pdos, image),
            Self::DistributedClocks(list) => list.iter().for_each(|it| image.extend_from_slice(&it.emit())),
            Self::Other { data, .. } => image.extend_from_slice(data),
        }
        if image.len() % 2 != 0 {
            image.push(PADDING);
        }
        let words = ((image.len() - start - HEADER_LENGTH) / 2) as u16;
        image[start + 2..start + HEADER_LENGTH].copy_from_slice(&words.to_le_bytes());
    }
}

/// The byte that fills a category up to a whole word.
const PADDING: u8 = 0xFF;

fn records<T>(
    kind: u16,
    data: &[u8],
    length: usize,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>, SiiError> {
    let chunks = data.chunks(length).enumerate();
    let truncated = |number: usize| SiiError::RecordTruncated {
        kind,
        expected: (number + 1) * length,
        found: data.len(),
    };
    chunks.map(|(number, chunk)| parse(chunk).ok_or_else(|| truncated(number))).collect()
}

fn parse_strings(data: &[u8]) -> Result<Vec<Vec<u8>>, SiiError> {
    let Some((&count, mut rest)) = data.split_first() else {
        return Ok(Vec::new());
    };
    let mut strings = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let offset = data.len() - rest.len();
        let truncated = |expected| {
            let kind = category_type::STRINGS;
            SiiError::RecordTruncated { kind, expected, found: data.len() }
        };
        let (&length, behind) = rest.split_first().ok_or_else(|| truncated(offset + 1))?;
        let length = usize::from(length);
        let string = behind.get(..length).ok_or_else(|| truncated(offset + 1 + length))?;
        strings.push(string.to_vec());
        rest = &behind[length..];
    }
    Ok(strings)
}

fn emit_strings(strings: &[Vec<u8>], image: &mut Vec<u8>) {
    let strings = &strings[..strings.len().min(255)];
    image.push(strings.len() as u8);
    for string in strings {
        let string = &string[..string.len().min(255)];
        image.push(string.len() as u8);
        image.extend_from_slice(string);
    }
}

fn parse_pdos(kind: u16, data: &[u8]) -> Result<Vec<SiiPdo>, SiiError> {
    let mut pdos = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let offset = data.len() - rest.len();
        let truncated =
            |length| SiiError::RecordTruncated { kind, expected: offset + length, found: data.len() };
        let (head, behind) =
            rest.split_first_chunk::<{ SiiPdo::LENGTH }>().ok_or_else(|| truncated(SiiPdo::LENGTH))?;
        let entries_length = usize::from(head[2]) * SiiPdoEntry::LENGTH;
        let (entries, behind) = behind
            .split_at_checked(entries_length)
            .ok_or_else(|| truncated(SiiPdo::LENGTH + entries_length))?;
        pdos.push(SiiPdo {
            index: read_u16(head, 0).unwrap_or(0),
            sync_manager: head[3],
            synchronization: head[4],
            name: head[5],
            flags: read_u16(head, 6).unwrap_or(0),
            entries: records(kind, entries, SiiPdoEntry::LENGTH, SiiPdoEntry::parse)?,
        });
        rest = behind;
    }
    Ok(pdos)
}

fn emit_pdos(pdos: &[SiiPdo], image: &mut Vec<u8>) {
    for pdo in pdos {
        let entries = &pdo.entries[..pdo.entries.len().min(255)];
        image.extend_from_slice(&pdo.index.to_le_bytes());
        image.extend_from_slice(&[entries.len() as u8, pdo.sync_manager, pdo.synchronization, pdo.name]);
        image.extend_from_slice(&pdo.flags.to_le_bytes());
        entries.iter().for_each(|entry| image.extend_from_slice(&entry.emit()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_category_names_the_missing_bytes() {
        let cut = |kind, data: &[u8]| Category::parse(kind, data).unwrap_err();
        let error = |kind, expected, found| SiiError::RecordTruncated { kind, expected, found };
        assert_eq!(cut(10, &[2, 1, b'A', 9, b'B']), error(10, 13, 5));
        assert_eq!(cut(30, &[0; 16]), error(30, 32, 16));
        assert_eq!(cut(41, &[0; 12]), error(41, 16, 12));
        assert_eq!(cut(50, &[0, 0x1A, 1, 3, 0, 0, 0, 0, 1, 2]), error(50, 16, 10));
        assert_eq!(cut(60, &[0; 2]), error(60, 24, 2));
    }
}
