//! Server of the SDO information service (ETG.1000.6, 5.6.3): lists of objects, and descriptions of
//! objects and entries, split into fragments where the mailbox is small.
//!
//! Of the values that may follow an entry's description, minimum and maximum are given where the
//! entry has a range; unit and default value are not.

use ethercat::sdo_abort::AbortCode;
use ethercat::wire::coe::{
    AccessRights, EntryDescription, ListType, ObjectDescription, SdoInformation, SdoInformationService,
    ValueInfo,
};

use super::dictionary::ObjectDictionary;
use super::object::{Allowed, Entry, Object};
use crate::application::Replies;

/// Fragments of an answer.
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    kind: InformationKind,
    bytes: Vec<u8>,
    sent: usize,
}

#[derive(Clone, Copy, Debug)]
enum InformationKind {
    List,
    Object,
    Entry,
    Error(AbortCode),
}

/// Bytes of CoE and SDO information header.
const OVERHEAD: usize = 6;

impl Fragments {
    /// Error answer to a request.
    pub(super) fn error(code: AbortCode) -> Self {
        Self { kind: InformationKind::Error(code), bytes: Vec::new(), sent: 0 }
    }

    /// Answer to `request`; `None` to an error, because errors in reply to errors would never end.
    pub(super) fn answering(
        dictionary: &ObjectDictionary,
        request: &SdoInformationService<'_>,
    ) -> Option<Self> {
        let (kind, answer) = match *request {
            SdoInformationService::ListRequest(list_type) => {
                (InformationKind::List, list(dictionary, list_type))
            }
            SdoInformationService::ObjectRequest { index } => {
                (InformationKind::Object, dictionary.object(index).map(object))
            }
            SdoInformationService::EntryRequest { index, sub_index, value_info } => {
                let found = dictionary.find(index, sub_index);
                (InformationKind::Entry, found.map(|id| entry(index, dictionary.entry(id), value_info)))
            }
            SdoInformationService::Error(_) => return None,
            _ => return Some(Self::error(AbortCode::UNKNOWN_COMMAND)),
        };
        Some(match answer {
            Ok(bytes) => Self { kind, bytes, sent: 0 },
            Err(code) => Self::error(code),
        })
    }

    /// Sends as many fragments as fit. Returns `true` once the last one is sent.
    pub(super) fn push(&mut self, replies: &mut Replies<'_>, message: &mut Vec<u8>) -> bool {
        // Indices in a list are not split.
        let room = replies.payload_limit().saturating_sub(OVERHEAD) & !1;
        message.resize(replies.payload_limit(), 0);
        loop {
            let end = self.bytes.len().min(self.sent + room);
            let left = (self.bytes.len() - end).div_ceil(room.max(1));
            let data = &self.bytes[self.sent..end];
            let information = SdoInformation {
                fragments_left: u16::try_from(left).unwrap_or(u16::MAX),
                incomplete: left > 0,
                service: match self.kind {
                    InformationKind::List => SdoInformationService::ListResponse(data),
                    InformationKind::Object => SdoInformationService::ObjectResponse(data),
                    InformationKind::Entry => SdoInformationService::EntryResponse(data),
                    InformationKind::Error(code) => SdoInformationService::Error(code),
                },
            };
            // A mailbox too small for any answer gets none.
            let Ok(length) = information.emit(message) else { return true };
            if end == self.sent && left > 0 {
                return true;
            }
            if !replies.push(&message[..length]) {
                return false;
            }
            self.sent = end;
            if left == 0 {
                return true;
            }
        }
    }
}

fn list(dictionary: &ObjectDictionary, list_type: ListType) -> Result<Vec<u8>, AbortCode> {
    let mut bytes = list_type.0.to_le_bytes().to_vec();
    if list_type == ListType::LENGTHS {
        for counted in LISTS {
            let length = indices(dictionary, counted).count();
            bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
        }
        return Ok(bytes);
    }
    if !LISTS.contains(&list_type) {
        return Err(AbortCode::UNSUPPORTED_ACCESS);
    }
    bytes.extend(indices(dictionary, list_type).flat_map(u16::to_le_bytes));
    Ok(bytes)
}

/// The five lists, in the order of their lengths in [`ListType::LENGTHS`].
const LISTS: [ListType; 5] = [
    ListType::ALL,
    ListType::RX_PDO_MAPPABLE,
    ListType::TX_PDO_MAPPABLE,
    ListType::STORED_FOR_REPLACEMENT,
    ListType::STARTUP_PARAMETERS,
];

fn indices(dictionary: &ObjectDictionary, list_type: ListType) -> impl Iterator<Item = u16> + '_ {
    let wanted = match list_type {
        ListType::RX_PDO_MAPPABLE => AccessRights::RX_PDO_MAPPABLE,
        ListType::TX_PDO_MAPPABLE => AccessRights::TX_PDO_MAPPABLE,
        ListType::STORED_FOR_REPLACEMENT => AccessRights::BACKUP,
        ListType::STARTUP_PARAMETERS => AccessRights::SETTING,
        _ => AccessRights(0),
    };
    let listed = move |object: &&Object| object.entries().iter().any(|entry| entry.access.contains(wanted));
    dictionary.objects().filter(listed).map(|object| object.index)
}

fn object(object: &Object) -> Vec<u8> {
    let description = ObjectDescription {
        index: object.index,
        data_type: object.data_type_code,
        maximum_sub_index: object.highest_sub_index(),
        object_code: object.code,
        name: object.name.as_bytes(),
    };
    let mut bytes = vec![0; OBJECT_LENGTH + object.name.len()];
    let length = description.emit(&mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

fn entry(index: u16, entry: &Entry, asked: ValueInfo) -> Vec<u8> {
    let mut data = Vec::new();
    let mut value_info = ValueInfo(0);
    if let Allowed::Range(minimum, maximum) = entry.allowed {
        for (kind, value) in [(ValueInfo::MINIMUM, minimum), (ValueInfo::MAXIMUM, maximum)] {
            if asked.contains(kind) {
                value_info.0 |= kind.0;
                data.extend(value.to_le_bytes().into_iter().take(entry.byte_length()));
            }
        }
    }
    data.extend(entry.name.bytes());
    let description = EntryDescription {
        index,
        sub_index: entry.sub_index,
        value_info,
        data_type: entry.data_type.code(),
        bit_length: entry.bit_length,
        access: entry.access,
        data: &data,
    };
    let mut bytes = vec![0; ENTRY_LENGTH + data.len()];
    let length = description.emit(&mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

/// Bytes of an object description before its name.
const OBJECT_LENGTH: usize = 6;

/// Bytes of an entry description before its values and name.
const ENTRY_LENGTH: usize = 10;
