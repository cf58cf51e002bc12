//! Objects of the SubDevices on a bus: read, written, listed.

use ethercat::main_device::{Event, MailboxError, MailboxRequest, MailboxService};
use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::{
    AccessRights, EntryDescription, ListType, ObjectCode, ObjectDescription, ValueInfo,
};
use robot::object::ObjectType;

use super::{BRING_UP_PATIENCE, Bus};
use crate::failure::Failure;
use crate::object_address::ObjectAddress;

/// Bytes of the longest object that is read.
const LONGEST_OBJECT: usize = 1 << 20;

/// What an entry is and who may do what with it.
pub(crate) struct Entry {
    pub(crate) data_type: u16,
    bit_length: u16,
    access: AccessRights,
    name: String,
}

impl Bus {
    /// The bytes of an object (SDO upload).
    pub(crate) fn upload(&mut self, position: u16, object: ObjectAddress) -> Result<Vec<u8>, Failure> {
        let ObjectAddress { index, sub_index } = object;
        let service = MailboxService::Upload { index, sub_index, complete_access: false };
        self.ask(position, service, Vec::with_capacity(LONGEST_OBJECT))
            .map_err(|error| self.refused(position, &format!("reading object {object}"), error))
    }

    /// Writes an object (SDO download).
    pub(crate) fn download(
        &mut self,
        position: u16,
        object: ObjectAddress,
        value: &[u8],
    ) -> Result<(), Failure> {
        let ObjectAddress { index, sub_index } = object;
        let service = MailboxService::Download { index, sub_index, complete_access: false };
        self.ask(position, service, value.to_vec())
            .map(drop)
            .map_err(|error| self.refused(position, &format!("writing object {object}"), error))
    }

    /// The indices of all objects (SDO information).
    pub(crate) fn object_indices(&mut self, position: u16) -> Result<Vec<u16>, Failure> {
        let service = MailboxService::ObjectList(ListType::ALL);
        let list = self
            .ask(position, service, Vec::with_capacity(LONGEST_OBJECT))
            .map_err(|error| self.refused(position, "listing the objects", error))?;
        // The first two bytes repeat the list type.
        let indices = list.get(2..).unwrap_or_default().chunks_exact(2);
        Ok(indices.map(|index| u16::from_le_bytes([index[0], index[1]])).collect())
    }

    /// An object and its entries, a line each (SDO information).
    pub(crate) fn describe_object(&mut self, position: u16, index: u16) -> Result<String, Failure> {
        let doing = format!("asking about object {index:#06x}");
        let bytes = self
            .ask(position, MailboxService::DescribeObject { index }, Vec::with_capacity(LONGEST_OBJECT))
            .map_err(|error| self.refused(position, &doing, error))?;
        let object = ObjectDescription::parse(&bytes)
            .map_err(|error| self.failed(position, &doing, &error.to_string()))?;
        let (kind, last) = match object.object_code {
            ObjectCode::VARIABLE => ("variable", 0),
            ObjectCode::ARRAY => ("array", object.maximum_sub_index),
            ObjectCode::RECORD => ("record", object.maximum_sub_index),
            _ => ("object", object.maximum_sub_index),
        };
        let heading = format!("{index:#06x}     {kind:<9} {}", readable(object.name));
        let mut text = format!("{}\n", heading.trim_end());
        for sub_index in 0..=last {
            let address = ObjectAddress { index, sub_index };
            match self.ask_entry(position, address) {
                Ok(entry) => text += &format!("  {address}  {entry}\n"),
                // Sub-indices need not be without gaps.
                Err(MailboxError::Aborted(AbortCode::NO_SUB_INDEX)) => {}
                Err(error) => {
                    return Err(self.refused(position, &format!("asking about {address}"), error));
                }
            }
        }
        Ok(text)
    }

    /// What the SubDevice says about an entry (SDO information).
    pub(crate) fn entry(&mut self, position: u16, object: ObjectAddress) -> Result<Entry, Failure> {
        self.ask_entry(position, object)
            .map_err(|error| self.refused(position, &format!("asking about object {object}"), error))
    }

    fn ask_entry(&mut self, position: u16, object: ObjectAddress) -> Result<Entry, MailboxError> {
        let ObjectAddress { index, sub_index } = object;
        let service = MailboxService::DescribeEntry { index, sub_index, value_info: ValueInfo::default() };
        let bytes = self.ask(position, service, Vec::with_capacity(LONGEST_OBJECT))?;
        let entry = EntryDescription::parse(&bytes).map_err(MailboxError::Format)?;
        let name = entry.values().map(|values| readable(values.name)).unwrap_or_default();
        let EntryDescription { data_type, bit_length, access, .. } = entry;
        Ok(Entry { data_type, bit_length, access, name })
    }

    /// One mailbox request, from the queue to its outcome.
    fn ask(
        &mut self,
        position: u16,
        service: MailboxService,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, MailboxError> {
        self.main_device
            .submit(MailboxRequest { position, service, data })
            .map_err(|outcome| outcome.result.err().unwrap_or(MailboxError::NotReady))?;
        let outcome = self.pump().until(BRING_UP_PATIENCE, |_, event| match event {
            Some(Event::Mailbox(outcome)) => Some(outcome),
            _ => None,
        });
        match outcome {
            Ok(outcome) => outcome.result.map(|()| outcome.request.data),
            Err(_) => Err(MailboxError::Timeout(BRING_UP_PATIENCE)),
        }
    }

    fn refused(&self, position: u16, doing: &str, error: MailboxError) -> Failure {
        let found = self.main_device.sub_devices().get(usize::from(position));
        if let Some(problem) = found.and_then(|it| it.sii_problem.as_ref()) {
            return self.failed(position, doing, &problem.to_string());
        }
        let remedy = match error {
            MailboxError::Aborted(_) => {
                "; `onbeat sdo list` shows the objects it has and who may write them"
            }
            MailboxError::NoCoe => "; only SubDevices with CoE have objects",
            _ => "",
        };
        self.failed(position, doing, &format!("{error}{remedy}"))
    }

    fn failed(&self, position: u16, doing: &str, what: &str) -> Failure {
        let name = self.main_device.sub_devices().get(usize::from(position)).map_or("", |it| &it.name);
        Failure::new(format!("SubDevice {position} \"{name}\", {doing}: {what}"))
    }
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
fn readable(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    text.trim_end_matches('\0')
        .chars()
        .map(|letter| if letter.is_control() { '.' } else { letter })
        .collect()
}
