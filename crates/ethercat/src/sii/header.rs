//! Words 0x00 to 0x3F of an SII image (ETG.1000.6, 5.4, Table 16).

use super::{CHECKSUM_DISABLED, Identity, SiiError, crc8};
use crate::table::bit_set;
use crate::wire::{read_u16, read_u32};

/// Addresses of a SubDevice's mailboxes, as seen from it: it receives the MainDevice's writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// Physical address of the mailbox the MainDevice writes (SyncManager 0).
    pub receive_offset: u16,
    /// Its bytes.
    pub receive_size: u16,
    /// Physical address of the mailbox the MainDevice reads (SyncManager 1).
    pub send_offset: u16,
    /// Its bytes.
    pub send_size: u16,
}

/// The mailbox protocols of a SubDevice (word 0x1C).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MailboxProtocols(pub u16);

impl MailboxProtocols {
    /// ADS over EtherCAT.
    pub const AOE: Self = Self(0x0001);
    /// Ethernet over EtherCAT.
    pub const EOE: Self = Self(0x0002);
    /// CAN application protocol over EtherCAT.
    pub const COE: Self = Self(0x0004);
    /// File access over EtherCAT.
    pub const FOE: Self = Self(0x0008);
    /// Servo drive profile over EtherCAT.
    pub const SOE: Self = Self(0x0010);
    /// Vendor-specific protocol.
    pub const VOE: Self = Self(0x0020);
}

bit_set!(MailboxProtocols);

/// The fixed first 128 bytes, kept whole: vendors use reserved bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; Header::LENGTH],
}

impl Header {
    /// Bytes of the header.
    pub const LENGTH: usize = 128;

    /// The header in the first 128 bytes of `image`. The checksum is not checked here, but in
    /// [`Header::check`].
    ///
    /// # Errors
    /// [`SiiError::HeaderTruncated`].
    pub fn parse(image: &[u8]) -> Result<Self, SiiError> {
        match image.first_chunk() {
            Some(bytes) => Ok(Self { bytes: *bytes }),
            None => Err(SiiError::HeaderTruncated { expected: Self::LENGTH, found: image.len() }),
        }
    }

    /// Compares the checksum of the ESC configuration area, unless it is switched off.
    ///
    /// # Errors
    /// [`SiiError::Checksum`].
    pub fn check(&self) -> Result<(), SiiError> {
        let (expected, found) = (crc8(&self.bytes[..CHECKSUM]), self.bytes[CHECKSUM]);
        if expected == found || self.word(7) == CHECKSUM_DISABLED {
            Ok(())
        } else {
            Err(SiiError::Checksum { expected, found })
        }
    }

    /// The header's bytes in the image.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; Self::LENGTH] {
        &self.bytes
    }

    /// Vendor, product, revision and serial number.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let double_word = |word: usize| read_u32(&self.bytes, word * 2).unwrap_or(0);
        Identity {
            vendor_id: double_word(0x08),
            product_code: double_word(0x0A),
            revision: double_word(0x0C),
            serial: double_word(0x0E),
        }
    }

    /// Station alias; 0: none.
    #[must_use]
    pub fn alias(&self) -> u16 {
        self.word(4)
    }

    /// Word the ESC loads into the PDI control and ESC configuration registers, 0x0140 and 0x0141.
    #[must_use]
    pub fn pdi_control(&self) -> u16 {
        self.word(0)
    }

    /// Word the ESC loads into the PDI configuration register, 0x0150.
    #[must_use]
    pub fn pdi_configuration(&self) -> u16 {
        self.word(1)
    }

    /// Length of the SYNC signals in units of 10 ns.
    #[must_use]
    pub fn sync_impulse_length(&self) -> u16 {
        self.word(2)
    }

    /// The mailboxes of PreOp, SafeOp and Op, or `None` if there are none.
    #[must_use]
    pub fn mailbox(&self) -> Option<Mailbox> {
        self.mailbox_at(STANDARD_MAILBOX)
    }

    /// The mailboxes of Bootstrap, or `None` if there are none.
    #[must_use]
    pub fn bootstrap_mailbox(&self) -> Option<Mailbox> {
        self.mailbox_at(BOOTSTRAP_MAILBOX)
    }

    /// The mailbox protocols spoken.
    #[must_use]
    pub fn mailbox_protocols(&self) -> MailboxProtocols {
        MailboxProtocols(self.word(MAILBOX_PROTOCOLS))
    }

    /// Bytes the EEPROM holds: its size word counts Kibit less one.
    #[must_use]
    pub fn size(&self) -> usize {
        (usize::from(self.word(SIZE)) + 1) * BYTES_PER_KIBIT
    }

    /// Version of the layout; 1.
    #[must_use]
    pub fn version(&self) -> u16 {
        self.word(VERSION)
    }

    fn word(&self, word: usize) -> u16 {
        read_u16(&self.bytes, word * 2).unwrap_or(0)
    }

    fn mailbox_at(&self, word: usize) -> Option<Mailbox> {
        let mailbox = Mailbox {
            receive_offset: self.word(word),
            receive_size: self.word(word + 1),
            send_offset: self.word(word + 2),
            send_size: self.word(word + 3),
        };
        (mailbox.receive_size != 0 || mailbox.send_size != 0).then_some(mailbox)
    }

    // Setters, for the builder alone.

    pub(super) fn new() -> Self {
        let mut header = Self { bytes: [0; Self::LENGTH] };
        header.set_word(VERSION, 1);
        header
    }

    pub(super) fn set_configuration(&mut self, words: [u16; 4], alias: u16) {
        for (word, value) in words.into_iter().chain([alias]).enumerate() {
            self.set_word(word, value);
        }
        let checksum = crc8(&self.bytes[..CHECKSUM]);
        self.set_word(7, u16::from(checksum));
    }

    pub(super) fn set_identity(&mut self, identity: Identity) {
        let Identity { vendor_id, product_code, revision, serial } = identity;
        for (word, value) in [(0x08, vendor_id), (0x0A, product_code), (0x0C, revision), (0x0E, serial)] {
            self.set_word(word, value as u16);
            self.set_word(word + 1, (value >> 16) as u16);
        }
    }

    pub(super) fn set_mailbox(&mut self, mailbox: Mailbox, protocols: MailboxProtocols) {
        self.set_mailbox_at(STANDARD_MAILBOX, mailbox);
        self.set_word(MAILBOX_PROTOCOLS, protocols.0);
    }

    pub(super) fn set_bootstrap_mailbox(&mut self, mailbox: Mailbox) {
        self.set_mailbox_at(BOOTSTRAP_MAILBOX, mailbox);
    }

    /// `size` in bytes, a multiple of 128.
    pub(super) fn set_size(&mut self, size: usize) {
        let kibit = size.div_ceil(BYTES_PER_KIBIT).clamp(1, 0x1_0000);
        self.set_word(SIZE, (kibit - 1) as u16);
    }

    fn set_mailbox_at(&mut self, word: usize, mailbox: Mailbox) {
        self.set_word(word, mailbox.receive_offset);
        self.set_word(word + 1, mailbox.receive_size);
        self.set_word(word + 2, mailbox.send_offset);
        self.set_word(word + 3, mailbox.send_size);
    }

    fn set_word(&mut self, word: usize, value: u16) {
        self.bytes[word * 2..][..2].copy_from_slice(&value.to_le_bytes());
    }
}

impl core::fmt::Debug for Header {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Header")
            .field("identity", &self.identity())
            .field("alias", &self.alias())
            .field("mailbox", &self.mailbox())
            .field("mailbox_protocols", &self.mailbox_protocols())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// Byte of the checksum.
const CHECKSUM: usize = 14;

// Word addresses.
const BOOTSTRAP_MAILBOX: usize = 0x14;
const STANDARD_MAILBOX: usize = 0x18;
const MAILBOX_PROTOCOLS: usize = 0x1C;
const SIZE: usize = 0x3E;
const VERSION: usize = 0x3F;

const BYTES_PER_KIBIT: usize = 128;
