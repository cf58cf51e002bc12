//! Outline of an SII: mailbox and SyncManagers alone, collected without memory of its own.

use crate::sii::category_type::{END, SYNC_MANAGERS};
use crate::sii::{Mailbox, MailboxProtocols, SiiError, SiiSyncManager};

/// Word of the standard mailbox's first offset; its protocols are the last of so many words (ETG.1000.6, Table 16).
const MAILBOX_WORD: u32 = 0x18;
const MAILBOX_WORDS: usize = 5;

/// First word of the categories.
const CATEGORIES: u32 = crate::sii::FIRST_CATEGORY as u32;

/// SyncManagers kept: process data of more is not looked for.
const MOST_SYNC_MANAGERS: usize = 8;

/// Categories looked at: what a device puts before its SyncManagers.
const MOST_CATEGORIES: usize = 64;

/// Words read so far, and where the next ones are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline {
    word: u32,
    stage: Stage,
    seen: usize,
    mailbox: [u16; MAILBOX_WORDS],
    sync_managers: [u8; MOST_SYNC_MANAGERS * SiiSyncManager::LENGTH],
    /// Bytes of them.
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Mailbox,
    Kind,
    Length(u16),
    /// So many words of the SyncManagers are left.
    SyncManagers(u16),
    Done,
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            word: MAILBOX_WORD,
            stage: Stage::Mailbox,
            seen: 0,
            mailbox: [0; MAILBOX_WORDS],
            sync_managers: [0; MOST_SYNC_MANAGERS * SiiSyncManager::LENGTH],
            length: 0,
        }
    }
}

impl Outline {
    /// Word to read next; `None` when all is there.
    pub(super) fn next_word(&self) -> Option<u32> {
        (self.stage != Stage::Done).then_some(self.word)
    }

    /// Takes what a read of that word gave.
    pub(super) fn supply(&mut self, bytes: &[u8]) -> Result<(), SiiError> {
        for pair in bytes.chunks_exact(2) {
            let at = self.word;
            self.take(u16::from_le_bytes([pair[0], pair[1]]))?;
            // Words read behind a jump are of something else.
            if self.word != at + 1 || self.stage == Stage::Done {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, value: u16) -> Result<(), SiiError> {
        let at = self.word;
        self.word += 1;
        self.stage = match self.stage {
            Stage::Mailbox => {
                self.mailbox[(at - MAILBOX_WORD) as usize] = value;
                if self.word < MAILBOX_WORD + MAILBOX_WORDS as u32 {
                    return Ok(());
                }
                self.word = CATEGORIES;
                Stage::Kind
            }
            Stage::Kind if value == END => Stage::Done,
            Stage::Kind if self.seen == MOST_CATEGORIES => {
                return Err(SiiError::TooManyCategories { limit: MOST_CATEGORIES });
            }
            Stage::Kind => {
                self.seen += 1;
                Stage::Length(value)
            }
            Stage::Length(SYNC_MANAGERS) if value > 0 => Stage::SyncManagers(value),
            Stage::Length(_) => {
                self.word += u32::from(value);
                Stage::Kind
            }
            Stage::SyncManagers(left) => {
                if let Some(bytes) = self.sync_managers.get_mut(self.length..self.length + 2) {
                    bytes.copy_from_slice(&value.to_le_bytes());
                    self.length += 2;
                }
                if left > 1 { Stage::SyncManagers(left - 1) } else { Stage::Done }
            }
            Stage::Done => Stage::Done,
        };
        Ok(())
    }

    /// The standard mailbox, if there is one.
    pub(super) fn mailbox(&self) -> Option<Mailbox> {
        let [receive_offset, receive_size, send_offset, send_size, _] = self.mailbox;
        let there = receive_size != 0 || send_size != 0;
        there.then_some(Mailbox { receive_offset, receive_size, send_offset, send_size })
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
    use crate::sii::{Builder, Category, Identity, Image, SyncManagerUse};

    fn image() -> Vec<u8> {
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
        let mut image = Builder::new(Identity::default(), "a name")
            .mailbox(mailbox, MailboxProtocols::COE)
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
        let bytes = image();
        let whole = Image::parse(&bytes).unwrap();
        for chunk in [4, 8] {
            let outline = outline(&bytes, chunk).unwrap();
            assert_eq!(outline.mailbox(), whole.header.mailbox());
            assert_eq!(outline.protocols(), whole.header.mailbox_protocols());
            assert_eq!(outline.sync_managers().collect::<Vec<_>>(), whole.sync_managers());
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
