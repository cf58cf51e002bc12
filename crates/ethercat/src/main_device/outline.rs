//! Outline of an SII: mailbox and SyncManagers, and a digest of its PDOs, collected without
//! allocation.

use crate::pdo::PdoMapping;
use crate::sii::category_type::{END, RX_PDOS, SYNC_MANAGERS, TX_PDOS};
use crate::sii::{Mailbox, MailboxProtocols, SiiError, SiiSyncManager, SyncManagerUse};

/// Word of the standard mailbox's first offset; its protocols are the last of so many words
/// (ETG.1000.6, Table 16).
const MAILBOX_WORD: u32 = 0x18;
const MAILBOX_WORDS: usize = 5;

/// First word of the categories.
const CATEGORIES: u32 = crate::sii::FIRST_CATEGORY as u32;

/// SyncManagers kept: process data of further ones is ignored.
const MOST_SYNC_MANAGERS: usize = 8;

/// Categories read: the ones a device may put before its SyncManagers.
const MOST_CATEGORIES: usize = 64;

/// Words read so far, and where the next ones are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    word: u32,
    stage: OutlineStage,
    seen: usize,
    mailbox: [u16; MAILBOX_WORDS],
    sync_managers: [u8; MOST_SYNC_MANAGERS * SiiSyncManager::LENGTH],
    /// Bytes of them.
    length: usize,
    pdos: PdoDigest,
}

/// Digest of the PDOs at each SyncManager: distinguishes mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PdoDigest {
    of_each: [u64; MOST_SYNC_MANAGERS],
    /// Bits of all of them.
    pub(super) bits: usize,
}

/// Words of a PDO category that are left, and the PDO that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pdos {
    kind: u16,
    left: u16,
    /// Entries of the PDO that are left.
    entries: u8,
    /// Its SyncManager; 0xFF: none.
    sync_manager: u8,
    /// Word of its header or of an entry, of [`PDO_WORDS`].
    word: u8,
    is_entry: bool,
    index: u16,
    sub_index: u16,
}

/// Words of a PDO's header, and of an entry.
const PDO_WORDS: u8 = 4;

impl PdoDigest {
    /// Digest of a mapping; PDOs without a SyncManager are assigned to the first of their use.
    pub(super) fn of(mapping: &PdoMapping, first: impl Fn(SyncManagerUse) -> Option<u8>) -> Self {
        let mut digest = Self::default();
        let directions = [
            (&mapping.outputs, RX_PDOS, SyncManagerUse::Outputs),
            (&mapping.inputs, TX_PDOS, SyncManagerUse::Inputs),
        ];
        for (pdos, kind, usage) in directions {
            for pdo in pdos.iter().filter(|pdo| !pdo.entries.is_empty()) {
                let sync_manager = pdo.sync_manager.or_else(|| first(usage)).unwrap_or(u8::MAX);
                digest.take(sync_manager, [kind, pdo.index, pdo.entries.len() as u16], 0);
                for it in &pdo.entries {
                    let numbers = [it.index, it.sub_index.into(), it.bit_length.into()];
                    digest.take(sync_manager, numbers, it.bit_length);
                }
            }
        }
        digest
    }

    fn take(&mut self, sync_manager: u8, numbers: [u16; 3], bits: u8) {
        let Some(digest) = self.of_each.get_mut(usize::from(sync_manager)) else { return };
        for number in numbers {
            // FNV-1a, 64 bits.
            *digest = (*digest ^ u64::from(number) ^ 0xCBF2_9CE4_8422_2325).wrapping_mul(0x0100_0000_01B3);
        }
        self.bits += usize::from(bits);
    }
}

impl Pdos {
    /// Takes the next word into the digest.
    fn take(&mut self, value: u16, digest: &mut PdoDigest) {
        let [low, high] = value.to_le_bytes();
        match (self.is_entry, self.word) {
            (_, 0) => self.index = value,
            (false, 1) => {
                (self.entries, self.sync_manager) = (low, high);
                if low > 0 {
                    digest.take(high, [self.kind, self.index, low.into()], 0);
                }
            }
            (true, 1) => self.sub_index = low.into(),
            (true, 2) => digest.take(self.sync_manager, [self.index, self.sub_index, high.into()], high),
            _ => {}
        }
        self.word += 1;
        if self.word == PDO_WORDS {
            self.entries -= u8::from(self.is_entry);
            (self.word, self.is_entry) = (0, self.entries > 0);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutlineStage {
    Mailbox,
    Kind,
    Length(u16),
    /// So many words of the SyncManagers are left.
    SyncManagers(u16),
    /// PDOs, where they cannot be mapped otherwise.
    Pdos(Pdos),
    Done,
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            word: MAILBOX_WORD,
            stage: OutlineStage::Mailbox,
            seen: 0,
            mailbox: [0; MAILBOX_WORDS],
            sync_managers: [0; MOST_SYNC_MANAGERS * SiiSyncManager::LENGTH],
            length: 0,
            pdos: PdoDigest::default(),
        }
    }
}

impl Outline {
    /// Word to read next; `None` when all is there.
    pub(super) fn next_word(&self) -> Option<u32> {
        (self.stage != OutlineStage::Done).then_some(self.word)
    }

    /// Takes the bytes read at that word.
    pub(super) fn supply(&mut self, bytes: &[u8]) -> Result<(), SiiError> {
        for pair in bytes.chunks_exact(2) {
            let at = self.word;
            self.take(u16::from_le_bytes([pair[0], pair[1]]))?;
            // Words read behind a jump are of something else.
            if self.word != at + 1 || self.stage == OutlineStage::Done {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, value: u16) -> Result<(), SiiError> {
        let at = self.word;
        self.word += 1;
        self.stage = match self.stage {
            OutlineStage::Mailbox => {
                self.mailbox[(at - MAILBOX_WORD) as usize] = value;
                if self.word < MAILBOX_WORD + MAILBOX_WORDS as u32 {
                    return Ok(());
                }
                self.word = CATEGORIES;
                OutlineStage::Kind
            }
            OutlineStage::Kind if value == END => OutlineStage::Done,
            OutlineStage::Kind if self.seen == MOST_CATEGORIES => {
                return Err(SiiError::TooManyCategories { limit: MOST_CATEGORIES });
            }
            OutlineStage::Kind => {
                self.seen += 1;
                OutlineStage::Length(value)
            }
            OutlineStage::Length(SYNC_MANAGERS) if value > 0 && self.length == 0 => {
                OutlineStage::SyncManagers(value)
            }
            OutlineStage::Length(kind @ (RX_PDOS | TX_PDOS)) if value > 0 && !self.has_coe() => {
                OutlineStage::Pdos(Pdos { kind, left: value, ..Pdos::default() })
            }
            OutlineStage::Length(_) => {
                self.word += u32::from(value);
                OutlineStage::Kind
            }
            OutlineStage::SyncManagers(left) => {
                if let Some(bytes) = self.sync_managers.get_mut(self.length..self.length + 2) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                    self.length += 2;
                }
                match left {
                    0 | 1 if self.has_coe() => OutlineStage::Done,
                    0 | 1 => OutlineStage::Kind,
                    left => OutlineStage::SyncManagers(left - 1),
                }
            }
            OutlineStage::Pdos(mut pdos) => {
                pdos.take(value, &mut self.pdos);
                pdos.left -= 1;
                if pdos.left > 0 { OutlineStage::Pdos(pdos) } else { OutlineStage::Kind }
            }
            OutlineStage::Done => OutlineStage::Done,
        };
        Ok(())
    }

    /// The standard mailbox, if there is one.
    pub(super) fn mailbox(&self) -> Option<Mailbox> {
        let [receive_offset, receive_size, send_offset, send_size, _] = self.mailbox;
        let there = receive_size != 0 || send_size != 0;
        there.then_some(Mailbox { receive_offset, receive_size, send_offset, send_size })
    }

    fn has_coe(&self) -> bool {
        self.mailbox().is_some() && self.protocols().contains(MailboxProtocols::COE)
    }

    /// Its PDOs that are assigned by default; not read with CoE.
    pub(super) fn pdos(&self) -> PdoDigest {
        self.pdos
    }

    pub(super) fn protocols(&self) -> MailboxProtocols {
        MailboxProtocols(self.mailbox[MAILBOX_WORDS - 1])
    }

    /// The SyncManagers, in order.
    pub(super) fn sync_managers(&self) -> impl Iterator<Item = SiiSyncManager> + Clone + '_ {
        self.sync_managers[..self.length].chunks(SiiSyncManager::LENGTH).filter_map(SiiSyncManager::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdo::{Pdo, PdoEntry};
    use crate::sii::{Builder, Category, Identity, Image};

    /// An image, with or without a mailbox, in which other data precedes each searched item.
    fn image_of(has_mailbox: bool) -> Vec<u8> {
        let sync_manager = |physical_address, usage| SiiSyncManager {
            physical_address,
            length: 0,
            control: 0x20,
            status: 0,
            enable: 1,
            usage,
        };
        let mailbox =
            Mailbox { receive_offset: 0x1000, receive_size: 128, send_offset: 0x1080, send_size: 100 };
        let pdo = |index: u16, sync_manager, bits: &[u8]| Pdo {
            index,
            sync_manager,
            fixed: true,
            name: String::new(),
            entries: (1..)
                .zip(bits)
                .map(|(sub_index, &bits)| {
                    let value = u32::from(index + 0x4600) << 16 | sub_index << 8 | u32::from(bits);
                    PdoEntry::from_mapping_value(value)
                })
                .collect(),
        };
        let builder = Builder::new(Identity::default(), "a name");
        let builder = if has_mailbox { builder.mailbox(mailbox, MailboxProtocols::COE) } else { builder };
        let mut image = builder
            .input(&pdo(0x1A00, Some(1), &[1, 1, 6]))
            .input(&pdo(0x1A01, None, &[32]))
            .output(&pdo(0x1600, Some(0), &[]))
            .output(&pdo(0x1601, Some(0), &[16, 8]))
            .input(&pdo(0x1A02, Some(1), &[8]))
            .sync_manager(sync_manager(0x1100, SyncManagerUse::Outputs))
            .sync_manager(sync_manager(0x1200, SyncManagerUse::Inputs))
            .build();
        image.categories.insert(0, Category::Other { kind: 0x0800, data: vec![41; 300] });
        image.categories.insert(1, Category::Other { kind: 0x0801, data: vec![] });
        let mut bytes = image.emit();
        bytes.extend([0xFF; 8]);
        bytes
    }

    fn outline(image: &[u8], chunk: usize) -> Result<Outline, SiiError> {
        let mut outline = Outline::default();
        while let Some(word) = outline.next_word() {
            let at = word as usize * 2;
            outline.supply(&image[at..at + chunk])?;
        }
        Ok(outline)
    }

    #[test]
    fn the_outline_is_that_of_the_whole_image() {
        let bytes = image_of(true);
        let whole = Image::parse(&bytes).unwrap();
        for chunk in [4, 8] {
            let outline = outline(&bytes, chunk).unwrap();
            assert_eq!(outline.mailbox(), whole.header.mailbox());
            assert_eq!(outline.protocols(), whole.header.mailbox_protocols());
            assert_eq!(outline.sync_managers().collect::<Vec<_>>(), whole.sync_managers());
        }
    }

    /// Without CoE no other PDOs can be mapped: the described ones must equal the SII's.
    #[test]
    fn digest_distinguishes_pdos_without_coe() {
        let bytes = image_of(false);
        let whole = Image::parse(&bytes).unwrap();
        let of = |mapping: &PdoMapping| {
            PdoDigest::of(mapping, |usage| Some(u8::from(usage == SyncManagerUse::Inputs)))
        };
        let mapping = whole.default_mapping();
        for chunk in [4, 8] {
            let outline = outline(&bytes, chunk).unwrap();
            assert_eq!(outline.sync_managers().collect::<Vec<_>>(), whole.sync_managers());
            assert_eq!(outline.pdos(), of(&mapping));
            assert_eq!(outline.pdos().bits, 40);
        }
        let changes: [fn(&mut PdoMapping); 7] = [
            |it| it.inputs[0].sync_manager = None,
            |it| it.inputs.retain(|pdo| pdo.index != 0x1A02),
            |it| it.inputs.swap(0, 1),
            |it| it.inputs[0].index += 1,
            |it| it.inputs[0].entries[1].bit_length += 1,
            |it| it.inputs[0].entries[1].sub_index += 1,
            |it| it.inputs[0].sync_manager = Some(2),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut other = mapping.clone();
            change(&mut other);
            assert_eq!(of(&other) == of(&mapping), number == 0, "change {number}");
        }
    }

    #[test]
    fn categories_without_an_end_are_given_up() {
        let endless = vec![0; 4096];
        assert_eq!(
            outline(&endless, 4).unwrap_err(),
            SiiError::TooManyCategories { limit: MOST_CATEGORIES }
        );
    }
}
