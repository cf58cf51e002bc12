//! The description of an object's entry, and the reasons that there is none.

use ethercat::main_device::{MailboxError, MailboxService};
use ethercat::wire::coe::{AccessRights, EntryDescription, ValueInfo};
use ethercat_linux::bring_up::BringUpError;
use types::object::ObjectType;

use crate::object_address::ObjectAddress;

/// Kind of an entry, and its access rights.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) data_type: u16,
    pub(super) bit_length: u16,
    pub(crate) access: AccessRights,
    pub(super) name: String,
}

/// Reason that a question stayed without its answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The SubDevice's mailbox.
    Mailbox(MailboxError),
    /// The bus, its link, or the caller.
    Bus(BringUpError),
    /// The running cycle, in its words.
    Running(String),
}

impl From<MailboxError> for Unanswered {
    fn from(error: MailboxError) -> Self {
        Self::Mailbox(error)
    }
}

impl Entry {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, MailboxError> {
        let entry = EntryDescription::parse(bytes).map_err(MailboxError::Format)?;
        let name = entry.values().map(|values| readable(values.name)).unwrap_or_default();
        let EntryDescription { data_type, bit_length, access, .. } = entry;
        Ok(Self { data_type, bit_length, access, name })
    }
}

/// The question what an entry is.
pub(super) fn entry_service(object: ObjectAddress) -> MailboxService {
    let ObjectAddress { index, sub_index } = object;
    MailboxService::DescribeEntry { index, sub_index, value_info: ValueInfo::default() }
}

impl std::fmt::Display for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rights = [
            (AccessRights::READ_PRE_OP, AccessRights::WRITE_PRE_OP),
            (AccessRights::READ_SAFE_OP, AccessRights::WRITE_SAFE_OP),
            (AccessRights::READ_OP, AccessRights::WRITE_OP),
        ];
        for (read, write) in rights {
            f.write_str(if self.access.contains(read) { "r" } else { "-" })?;
            f.write_str(if self.access.contains(write) { "w" } else { "-" })?;
        }
        let data_type = ObjectType::from_data_type(self.data_type)
            .map_or_else(|| format!("type {:#06x}", self.data_type), |known| known.to_string());
        write!(f, "  {data_type:<12} {:>5} bits  {}", self.bit_length, self.name)
    }
}

/// A name as the wire has it: ASCII by the standard, anything in the field.
pub(super) fn readable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.trim_end_matches('\0')
        .chars()
        .map(|letter| if letter.is_control() { '.' } else { letter })
        .collect()
}
