//! An object dictionary as a SubDevice describes it, as lines of text or as JSON.

use std::fmt;

use ethercat::wire::coe::AccessRights;
use serde_json::{Value, json};
use types::object::ObjectType;

use super::entry::Entry;
use crate::object_address::ObjectAddress;

/// Answer of a SubDevice to one question about its object dictionary.
#[derive(Debug)]
pub(crate) enum DictionaryItem {
    Object {
        index: u16,
        /// `variable`, `array`, `record`; `object` for another code.
        kind: &'static str,
        name: String,
    },
    Entry {
        address: ObjectAddress,
        entry: Entry,
        /// Value as text if requested, `?` if it could not be read.
        value: Option<String>,
    },
    /// An answer that was none, about an object or an entry of it.
    Unread { index: u16, sub_index: Option<u8>, why: String },
}

impl fmt::Display for DictionaryItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object { index, kind, name } => {
                f.write_str(format!("{index:#06x}     {kind:<9} {name}").trim_end())
            }
            Self::Entry { address, entry, value: None } => write!(f, "  {address}  {entry}"),
            Self::Entry { address, entry, value: Some(value) } => {
                write!(f, "  {address}  {entry} = {}", value.replace('\n', "\n      "))
            }
            Self::Unread { index, sub_index: None, why } => write!(f, "{index:#06x}     ? {why}"),
            Self::Unread { index, sub_index: Some(sub_index), why } => {
                write!(f, "  {}  ? {why}", ObjectAddress { index: *index, sub_index: *sub_index })
            }
        }
    }
}

/// An array of the objects, each with its entries; an `error` where an answer was none.
pub(crate) fn json(items: &[DictionaryItem]) -> Value {
    let mut objects: Vec<Value> = Vec::new();
    for it in items {
        let entry = match it {
            DictionaryItem::Object { index, kind, name } => {
                let index = format!("{index:#06x}");
                objects.push(json!({ "index": index, "kind": kind, "name": name, "entries": [] }));
                continue;
            }
            DictionaryItem::Unread { index, sub_index: None, why } => {
                objects.push(json!({ "index": format!("{index:#06x}"), "error": why }));
                continue;
            }
            DictionaryItem::Unread { sub_index: Some(sub_index), why, .. } => {
                json!({ "sub_index": sub_index, "error": why })
            }
            DictionaryItem::Entry { address, entry, value } => {
                let mut entry = entry_json(address.sub_index, entry);
                if let Some(value) = value {
                    entry["value"] = value.as_str().into();
                }
                entry
            }
        };
        let entries = objects.last_mut().and_then(|object| object["entries"].as_array_mut());
        if let Some(entries) = entries {
            entries.push(entry);
        }
    }
    Value::Array(objects)
}

fn entry_json(sub_index: u8, entry: &Entry) -> Value {
    let rights = |read, write| {
        let letter = |right, letter| if entry.access.contains(right) { letter } else { "" };
        format!("{}{}", letter(read, "r"), letter(write, "w"))
    };
    json!({
        "sub_index": sub_index,
        "type": ObjectType::from_data_type(entry.data_type).map(|it| it.to_string()),
        "data_type": format!("{:#06x}", entry.data_type),
        "bits": entry.bit_length,
        "access": {
            "pre_op": rights(AccessRights::READ_PRE_OP, AccessRights::WRITE_PRE_OP),
            "safe_op": rights(AccessRights::READ_SAFE_OP, AccessRights::WRITE_SAFE_OP),
            "op": rights(AccessRights::READ_OP, AccessRights::WRITE_OP),
        },
        "name": entry.name,
    })
}
