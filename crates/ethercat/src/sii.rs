//! The SubDevice information interface: the content of a SubDevice's EEPROM (ETG.1000.6, 5.4;
//! ETG.2010).
//!
//! The EEPROM is counted in 16-bit words. Words 0x00 to 0x3F are the [`Header`]; categories follow
//! from word 0x40 until one of type 0xFFFF.
//!
//! | given | use |
//! |---|---|
//! | a whole image | [`Image::parse`] |
//! | a bus that yields 4 or 8 bytes at a time | [`Reader`] |
//! | a SubDevice described in code | [`Builder`], then [`Image::emit`] |

mod builder;
mod category;
mod header;
mod image;
mod reader;
mod record;

use core::fmt;

use thiserror::Error;

pub use builder::Builder;
pub use category::{Category, category_type};
pub use header::{Header, Mailbox, MailboxProtocols};
pub use image::Image;
pub use reader::Reader;
pub use record::{
    CoeDetails, DistributedClock, FmmuUse, General, SiiPdo, SiiPdoEntry, SiiSyncManager, SyncManagerUse,
};

/// First word of the categories.
pub const FIRST_CATEGORY: u16 = 0x0040;

/// The checksum word with which an ESC does not check (ESC data sheet, section II, 2.11).
pub const CHECKSUM_DISABLED: u16 = 0x88A4;

/// Identity of a SubDevice: words 0x08 to 0x0F, and object 0x1018.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Vendor ID, assigned by the EtherCAT Technology Group.
    pub vendor_id: u32,
    /// The vendor's product code.
    pub product_code: u32,
    /// Revision number.
    pub revision: u32,
    /// Serial number; 0: none.
    pub serial: u32,
}

impl fmt::Display for Identity {
    /// Vendor, product and revision: the kind of a SubDevice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vendor_id, product_code, revision, serial: _ } = self;
        write!(f, "vendor {vendor_id:#010x} product {product_code:#010x} revision {revision:#010x}")
    }
}

/// Reason that bytes are not an SII image.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SiiError {
    /// The image ends inside the header.
    #[error("SII image cut short: {found} bytes, expected at least {expected}, the header")]
    HeaderTruncated {
        /// Bytes needed.
        expected: usize,
        /// Bytes there.
        found: usize,
    },
    /// The checksum over the ESC configuration area is wrong.
    #[error("SII checksum {found:#04x} at byte 14, expected {expected:#04x} over bytes 0 to 13")]
    Checksum {
        /// Checksum of the first 14 bytes.
        expected: u8,
        /// Checksum stored.
        found: u8,
    },
    /// The image ends before the end category.
    #[error(
        "SII image cut short: it ends at byte {found}, expected a category header or the end mark 0xffff there"
    )]
    NoEnd {
        /// Bytes there.
        found: usize,
    },
    /// A category reaches past the end of the image.
    #[error(
        "SII image cut short: {found} bytes, expected at least {expected}, where category {kind} from byte {offset} ends"
    )]
    CategoryTruncated {
        /// Category type.
        kind: u16,
        /// Byte of the image where the category's header starts.
        offset: usize,
        /// Offset at which it would end.
        expected: usize,
        /// Offset at which the image ends.
        found: usize,
    },
    /// A category ends inside one of its records.
    #[error("SII category {kind} ends at byte {found} of itself, inside a record that needs {expected}")]
    RecordTruncated {
        /// Category type.
        kind: u16,
        /// Bytes of the category that would be needed.
        expected: usize,
        /// Bytes of the category.
        found: usize,
    },
    /// More categories than any SubDevice needs, as in an endless row of empty ones.
    #[error("SII has more than {limit} categories and no end mark 0xffff behind them")]
    TooManyCategories {
        /// Most categories read.
        limit: usize,
    },
    /// Categories longer than any SubDevice needs.
    #[error("SII categories to be read take {found} bytes and more, expected at most {limit}")]
    TooLarge {
        /// Bytes of the categories up to the one in excess.
        found: usize,
        /// Bytes read at most.
        limit: usize,
    },
    /// The EEPROM is longer than its address reaches.
    #[error("SII categories extend past word {limit:#06x}, the last word according to the header")]
    TooLong {
        /// First word that is not there.
        limit: u32,
    },
}

/// The CRC-8 of word 0x07: polynomial 0x07, start value 0xFF (ETG.1000.6, 5.4, Table 16).
///
/// ```
/// let configuration = [0x04, 0x01, 0, 0, 0, 0, 0x0F, 0, 0, 0, 0, 0, 0, 0];
/// assert_eq!(onbeat_ethercat::sii::crc8(&configuration), 0xD8); // an EL2004
/// ```
#[must_use]
pub fn crc8(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0xFF, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| if crc & 0x80 != 0 { crc << 1 ^ 0x07 } else { crc << 1 })
    })
}
