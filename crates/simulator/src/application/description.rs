//! Descriptions of applications, and errors in them.

use std::borrow::Cow;

use ethercat::pdo::{Pdo, PdoEntry, PdoMapping};
use ethercat::wire::coe::AccessRights;
use thiserror::Error;

use crate::coe::common;
use crate::coe::object::numbered;
use crate::coe::{DataType, Direction, Entry, Object, ObjectDictionary, READ_WRITE};

/// Reason for which an application cannot be built as described.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// A number that no real device has.
    #[error("{name} is {found}, expected {expected}")]
    Value {
        /// Name of the number.
        name: &'static str,
        /// Expected range.
        expected: &'static str,
        /// Value found.
        found: f64,
    },
    /// A PDO outside the indices of its direction in the standard.
    #[error("PDO 0x{found:04X} among the {direction}, expected 0x{first:04X} to 0x{last:04X}")]
    PdoIndex {
        /// `outputs` or `inputs`.
        direction: &'static str,
        /// Lowest index allowed.
        first: u16,
        /// Highest index allowed.
        last: u16,
        /// Index found.
        found: u16,
    },
    /// A mapped object has another length in the device.
    #[error(
        "PDO 0x{pdo:04X} maps object 0x{index:04X}:{sub_index:02X} with {found} bits, it has {expected}"
    )]
    MappedLength {
        /// Index of the mapping object.
        pdo: u16,
        /// Index of the mapped object.
        index: u16,
        /// Sub-index of the mapped object.
        sub_index: u8,
        /// Length of the object, in bits.
        expected: u16,
        /// Length in the mapping, in bits.
        found: u8,
    },
}

/// `value`, if it is finite and above 0.
pub(super) fn positive(name: &'static str, value: f64) -> Result<f64, DescriptionError> {
    let fits = value.is_finite() && value > 0.0;
    if fits { Ok(value) } else { Err(DescriptionError::Value { name, expected: "above 0", found: value }) }
}

/// `value`, if it is finite and 0 or more.
pub(super) fn not_negative(name: &'static str, value: f64) -> Result<f64, DescriptionError> {
    let fits = value.is_finite() && value >= 0.0;
    if fits {
        Ok(value)
    } else {
        Err(DescriptionError::Value { name, expected: "0 or more", found: value })
    }
}

/// Checks that a terminal has 1 to `most` channels.
pub(super) fn channels(number: usize, most: usize, expected: &'static str) -> Result<(), DescriptionError> {
    let fits = (1..=most).contains(&number);
    let wrong = DescriptionError::Value { name: "channels", expected, found: number as f64 };
    if fits { Ok(()) } else { Err(wrong) }
}

/// Adds mapping and assignment objects for `mapping`, and the mapped objects that `dictionary`
/// lacks. Existing ones become mappable. PDOs that are not fixed have space for `capacity` objects.
///
/// # Errors
/// [`DescriptionError::PdoIndex`], [`DescriptionError::MappedLength`].
pub(super) fn add_mapping(
    dictionary: &mut ObjectDictionary,
    mapping: &PdoMapping,
    capacity: u8,
) -> Result<(), DescriptionError> {
    let directions =
        [("outputs", &mapping.outputs, Direction::Outputs), ("inputs", &mapping.inputs, Direction::Inputs)];
    for (name, pdos, direction) in directions {
        for pdo in pdos {
            if !direction.mappings().contains(&pdo.index) {
                let (first, last) = direction.mappings().into_inner();
                let found = pdo.index;
                return Err(DescriptionError::PdoIndex { direction: name, first, last, found });
            }
            for entry in pdo.entries.iter().filter(|entry| entry.index != 0) {
                add_mapped_object(dictionary, pdo, entry, direction)?;
            }
        }
    }
    common::add_mapping(dictionary, mapping, capacity);
    Ok(())
}

fn add_mapped_object(
    dictionary: &mut ObjectDictionary,
    pdo: &Pdo,
    mapped: &PdoEntry,
    direction: Direction,
) -> Result<(), DescriptionError> {
    let access = match direction {
        Direction::Outputs => READ_WRITE.with(AccessRights::RX_PDO_MAPPABLE),
        Direction::Inputs => AccessRights::READ.with(AccessRights::TX_PDO_MAPPABLE),
    };
    let PdoEntry { index, sub_index, bit_length, ref name, .. } = *mapped;
    if let Some(entry) = dictionary.object_mut(index).and_then(|object| object.entry_mut(sub_index)) {
        if entry.bit_length != u16::from(bit_length) {
            let expected = entry.bit_length;
            let pdo = pdo.index;
            return Err(DescriptionError::MappedLength {
                pdo,
                index,
                sub_index,
                expected,
                found: bit_length,
            });
        }
        entry.access = entry.access.with(direction.mappable());
        return Ok(());
    }
    let data_type = DataType::of_bit_length(bit_length);
    let name: Cow<'static, str> =
        if name.is_empty() { numbered(sub_index).into() } else { name.clone().into() };
    let mut entry = Entry::new(sub_index, name, data_type, access);
    if data_type.bit_length().is_none() {
        entry = entry.with_bit_length(u16::from(bit_length));
    }
    match dictionary.object_mut(index) {
        Some(object) => object.add_entry(entry),
        None if sub_index == 0 => dictionary.add(Object::variable(index, entry)),
        None => {
            let name = if pdo.name.is_empty() { format!("Object 0x{index:04X}") } else { pdo.name.clone() };
            dictionary.add(Object::record(index, name, 0, vec![entry]));
        }
    }
    Ok(())
}
