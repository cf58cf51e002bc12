//! `pdos` of a SubDevice.
//!
//! `startup` of a SubDevice.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;

use ethercat::main_device::{ProcessDataSource, StartupSdo};
use ethercat::pdo::{self, MAPPING_INPUTS, MAPPING_OUTPUTS, PdoEntry, PdoMapping};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use types::object::{OBJECT_TYPES, ObjectType, ObjectValue};

use crate::check::{Checked, unknown_name};
use crate::error::Problem;
use crate::field::whole;
use crate::value::Spanned;

/// `pdos = "sii"`, or a table.
#[derive(Debug)]
enum Pdos {
    Sii,
    Explicit(MappingKeys),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MappingKeys {
    #[serde(default)]
    outputs: Vec<Spanned<Pdo>>,
    #[serde(default)]
    inputs: Vec<Spanned<Pdo>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pdo {
    index: Spanned<u16>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    fixed: bool,
    entries: Vec<Spanned<EntryKeys>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryKeys {
    index: u16,
    #[serde(default)]
    sub_index: u8,
    bits: Spanned<Bits>,
    #[serde(default)]
    name: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Bits(#[serde(deserialize_with = "whole::<_, _, 1, 255>")] u8);

impl<'de> Deserialize<'de> for Pdos {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> Visitor<'de> for TextOrTable {
            type Value = Pdos;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"sii\", or a table with outputs and inputs")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Pdos, E> {
                let other = || E::invalid_value(Unexpected::Str(text), &self);
                (text == "sii").then_some(Pdos::Sii).ok_or_else(other)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Pdos, A::Error> {
                MappingKeys::deserialize(MapAccessDeserializer::new(map)).map(Pdos::Explicit)
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}

/// Largest number of bytes of a SubDevice's outputs or inputs: one datagram (ETG.1000.4, 5.4.1: an
/// Ethernet frame of 1514 bytes less the headers).
pub(crate) const MOST_BYTES: usize = 1486;

/// Largest number of entries of a mapping and of PDOs of an assignment: sub-indices are 8 bits, 255
/// is reserved.
const MOST_SUB_INDICES: usize = 254;

/// A direction: name of its PDOs, and the indices they may have (ETG.1000.6, 5.6.7.4).
struct Direction {
    name: &'static str,
    indices: RangeInclusive<u16>,
}

const OUTPUTS: Direction = Direction { name: "outputs", indices: MAPPING_OUTPUTS..=0x17FF };

const INPUTS: Direction = Direction { name: "inputs", indices: MAPPING_INPUTS..=0x1BFF };

pub(super) fn process_data<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<ProcessDataSource, D::Error> {
    let mapping = match Pdos::deserialize(deserializer)? {
        Pdos::Sii => return Ok(ProcessDataSource::Sii),
        Pdos::Explicit(mapping) => mapping,
    };
    let checked = || {
        Ok(PdoMapping {
            outputs: direction(&OUTPUTS, &mapping.outputs)?,
            inputs: direction(&INPUTS, &mapping.inputs)?,
        })
    };
    checked().map(ProcessDataSource::Explicit).map_err(Problem::into_error)
}

fn direction(direction: &Direction, pdos: &[Spanned<Pdo>]) -> Checked<Vec<pdo::Pdo>> {
    let Direction { name, indices } = direction;
    let mut assigned = HashSet::new();
    let mut mapped = HashSet::new();
    let mut checked: Vec<pdo::Pdo> = Vec::new();
    for (count, it) in pdos.iter().enumerate() {
        let index = *it.get_ref().index.get_ref();
        let span = it.get_ref().index.span();
        if !indices.contains(&index) {
            let expected = format!("{:#06x} to {:#06x} for {name}", indices.start(), indices.end());
            return Err(Problem::new(span, format!("PDO {index:#06x}"), expected, "correct the index"));
        }
        if !assigned.insert(index) {
            let found = format!("PDO {index:#06x} twice");
            return Err(Problem::new(span, found, "every PDO once", "merge or renumber them"));
        }
        if count >= MOST_SUB_INDICES {
            let expected = format!("at most {MOST_SUB_INDICES} PDOs");
            return Err(Problem::new(span, format!("{} PDOs", pdos.len()), expected, "assign fewer"));
        }
        checked.push(checked_pdo(it, &mut mapped)?);
        let bytes = checked.iter().map(pdo::Pdo::bit_length).sum::<usize>().div_ceil(8);
        if bytes > MOST_BYTES {
            let found = format!("{bytes} bytes of {name} up to PDO {index:#06x}");
            let expected = format!("at most {MOST_BYTES}, what one datagram carries");
            return Err(Problem::new(it.span(), found, expected, "map less"));
        }
    }
    Ok(checked)
}

fn checked_pdo(pdo: &Spanned<Pdo>, mapped: &mut HashSet<(u16, u8)>) -> Checked<pdo::Pdo> {
    let Pdo { index, name, fixed, entries } = pdo.get_ref();
    let place = index.get_ref();
    if entries.is_empty() || entries.len() > MOST_SUB_INDICES {
        let found = format!("{} entries in PDO {place:#06x}", entries.len());
        return Err(Problem::new(
            pdo.span(),
            found,
            format!("1 to {MOST_SUB_INDICES}"),
            "correct its entries",
        ));
    }
    let entries = entries.iter().map(|it| entry(it, *place, mapped)).collect::<Checked<_>>()?;
    Ok(pdo::Pdo { index: *place, sync_manager: None, fixed: *fixed, name: name.clone(), entries })
}

fn entry(entry: &Spanned<EntryKeys>, pdo: u16, mapped: &mut HashSet<(u16, u8)>) -> Checked<PdoEntry> {
    let EntryKeys { index, sub_index, bits, name } = entry.get_ref();
    let Bits(bit_length) = *bits.get_ref();
    if *index != 0 && !mapped.insert((*index, *sub_index)) {
        let found = format!("object {index:#06x}:{sub_index:02x} mapped again in PDO {pdo:#06x}");
        return Err(Problem::new(entry.span(), found, "every object once", "remove one of the two"));
    }
    if let Some(expected) = cia_402_bits(*index, *sub_index).filter(|&expected| expected != bit_length) {
        let found = format!("{bit_length} bits for object {index:#06x}:{sub_index:02x}");
        let expected = format!("the {expected} that CiA 402 gives it");
        return Err(Problem::new(bits.span(), found, expected, "correct bits"));
    }
    Ok(PdoEntry { index: *index, sub_index: *sub_index, bit_length, data_type: 0, name: name.clone() })
}

/// Length of the CiA 402 objects that drives exchange in cyclic modes (CiA 402-2).
fn cia_402_bits(index: u16, sub_index: u8) -> Option<u8> {
    match (index, sub_index) {
        (0x6040 | 0x6041 | 0x603F | 0x6071 | 0x6072 | 0x6077 | 0x60B2, 0) => Some(16),
        (0x607A | 0x60FF | 0x6064 | 0x606C | 0x60F4 | 0x60B0 | 0x60B1 | 0x60FD, 0) => Some(32),
        (0x6060 | 0x6061, 0) => Some(8),
        _ => None,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Startup {
    index: u16,
    #[serde(default)]
    sub_index: u8,
    #[serde(default)]
    complete_access: bool,
    #[serde(rename = "type")]
    value_type: Spanned<String>,
    value: Spanned<toml::Value>,
}

pub(super) fn startup<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<StartupSdo>, D::Error> {
    let sdos = Vec::<Startup>::deserialize(deserializer)?;
    sdos.iter().map(sdo).collect::<Checked<_>>().map_err(Problem::into_error)
}

fn sdo(startup: &Startup) -> Checked<StartupSdo> {
    let Startup { index, sub_index, complete_access, value_type, value } = startup;
    let object_type: ObjectType = value_type.get_ref().parse().map_err(|_| {
        let names = OBJECT_TYPES.map(|(name, _)| name);
        let found = format!("unknown type \"{}\"", value_type.get_ref());
        let expected = format!("one of {}", names.join(", "));
        unknown_name(value_type.span(), found, expected, value_type.get_ref(), names, "the type")
    })?;
    let object = match value.get_ref() {
        toml::Value::Boolean(value) => Some(ObjectValue::Bool(*value)),
        toml::Value::Integer(value) => Some(ObjectValue::Integer(i128::from(*value))),
        toml::Value::Float(value) => Some(ObjectValue::Real(*value)),
        toml::Value::String(value) => Some(ObjectValue::Text(value.clone())),
        _ => None,
    };
    let encoded = object.map(|object| object_type.encode(&object));
    let refused = |found: String, expected: String| {
        let found = format!("the value {found} for object {index:#06x}:{sub_index:02x}");
        Problem::new(value.span(), found, expected, "correct the value or its type")
    };
    let data = match encoded {
        Some(Ok(data)) => data,
        Some(Err(error)) => return Err(refused(error.found, error.expected)),
        None => {
            let found = value.get_ref().type_str().to_owned();
            return Err(refused(found, "a number, a text, true or false".to_owned()));
        }
    };
    if data.is_empty() {
        return Err(refused("of no bytes".to_owned(), "at least one byte".to_owned()));
    }
    Ok(StartupSdo { index: *index, sub_index: *sub_index, complete_access: *complete_access, data })
}
