//! Process data by type: an object resolved and checked once, read and written in every cycle.

use alloc::string::String;
use alloc::vec::Vec;
use core::any::type_name;
use core::marker::PhantomData;

use thiserror::Error;
pub use types::signal::Direction;

use super::{Pdo, PdoEntry, PdoField, PdoMapping, ProcessElement, ProcessValue, fields};

/// Place of a value of type `T` among a SubDevice's inputs or outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field<T> {
    /// Its first element.
    first: PdoField,
    value: PhantomData<T>,
}

impl<T: ProcessValue> Field<T> {
    /// The value in a SubDevice's `image`; zeros where that ends before it.
    #[must_use]
    pub fn get(self, image: &[u8]) -> T {
        T::read(image, self.first)
    }

    /// Writes the value, and leaves its neighbours unchanged. An integer beyond the range of the
    /// entry becomes the nearest value in range.
    pub fn set(self, image: &mut [u8], value: T) {
        value.write(image, self.first);
    }

    /// Bits from the start of the SubDevice's inputs or outputs, and bits of one element.
    #[must_use]
    pub fn place(self) -> PdoField {
        self.first
    }
}

impl PdoMapping {
    /// Resolves object `index`:`sub_index` as a value of type `T` that goes in this direction.
    ///
    /// # Errors
    /// An object that is not mapped, or the other way, or that `T` does not fit.
    pub fn field<T: ProcessValue>(
        &self,
        direction: Direction,
        index: u16,
        sub_index: u8,
    ) -> Result<Field<T>, FieldError> {
        let is_it =
            |entry: &PdoEntry| entry.index != 0 && entry.index == index && entry.sub_index == sub_index;
        let mut found = fields(self.pdos(direction)).skip_while(|(entry, _)| !is_it(entry));
        let Some((_, first)) = found.next() else {
            return Err(self.missing(direction, index, sub_index));
        };
        let widths = T::Element::WIDTHS;
        let wanted = type_name::<T>();
        // An entry that holds several elements has the widest elements.
        let element = if widths.contains(&first.bit_length) { first.bit_length } else { *widths.end() };
        let bits = element * T::ELEMENTS;
        if T::ELEMENTS == 1 && first.bit_length != element || first.bit_length % element != 0 {
            return Err(FieldError::Width { index, sub_index, bits: first.bit_length, wanted });
        }
        // Entries behind it belong to an array as long as they follow without a gap and hold whole
        // elements.
        let mut end = first.bit_offset + first.bit_length;
        for (entry, field) in found {
            let follows = field.bit_offset == end && entry.index != 0 && field.bit_length % element == 0;
            if end >= first.bit_offset + bits || !follows {
                break;
            }
            end += field.bit_length;
        }
        if end != first.bit_offset + bits {
            let elements = (end - first.bit_offset) / element;
            return Err(FieldError::Length { index, sub_index, elements, wanted });
        }
        Ok(Field { first: PdoField { bit_length: element, ..first }, value: PhantomData })
    }

    pub(super) fn pdos(&self, direction: Direction) -> &[Pdo] {
        match direction {
            Direction::Input => &self.inputs,
            Direction::Output => &self.outputs,
        }
    }

    /// Reason that there is no such object: it goes the other way, or is not mapped.
    fn missing(&self, direction: Direction, index: u16, sub_index: u8) -> FieldError {
        let entries = |direction| fields(self.pdos(direction)).map(|(entry, _)| entry);
        if entries(direction.other()).any(|it| it.index == index && it.sub_index == sub_index) {
            return FieldError::Direction { direction, index, sub_index };
        }
        let mut near: Vec<PdoEntry> = entries(direction).filter(|it| it.index != 0).cloned().collect();
        near.sort_by_key(|it| (it.index.abs_diff(index), it.sub_index.abs_diff(sub_index)));
        near.truncate(NEAR);
        FieldError::NotMapped { direction, index, sub_index, near }
    }
}

/// Mapped objects listed in the error of a failed request.
const NEAR: usize = 6;

/// Reason that an object is no such process data.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// No PDO in use maps it.
    #[error("no {direction} {index:#06x}:{sub_index:02x} is mapped; {}", listed(*direction, near))]
    NotMapped {
        /// Requested.
        direction: Direction,
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// The mapped objects nearest to it, the nearest first.
        near: Vec<PdoEntry>,
    },
    /// It goes the other way.
    #[error("{index:#06x}:{sub_index:02x} is an {}, not an {direction}", direction.other())]
    Direction {
        /// Requested.
        direction: Direction,
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
    },
    /// It has another width than the type.
    #[error(
        "{index:#06x}:{sub_index:02x} has {bits} {}, which {wanted} does not take; read and write it as {}",
        if *bits == 1 { "bit" } else { "bits" },
        fitting(*bits)
    )]
    Width {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Bits it has.
        bits: usize,
        /// The requested type.
        wanted: &'static str,
    },
    /// An array is longer or shorter than the adjacent mapped entries.
    #[error(
        "{index:#06x}:{sub_index:02x} and what is mapped right behind it do not make {wanted}: {elements} elements"
    )]
    Length {
        /// Object index.
        index: u16,
        /// Sub-index.
        sub_index: u8,
        /// Elements there, counted up to the first entry's end that reaches the requested length.
        elements: usize,
        /// The requested type.
        wanted: &'static str,
    },
}

fn listed(direction: Direction, near: &[PdoEntry]) -> String {
    use core::fmt::Write as _;

    if near.is_empty() {
        return alloc::format!("it has no {direction}s");
    }
    let mut text = String::from("near it: ");
    for (number, entry) in near.iter().enumerate() {
        let separator = if number == 0 { "" } else { ", " };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}{entry}");
    }
    text
}

/// The types that take an entry of this width.
fn fitting(bits: usize) -> &'static str {
    match bits {
        1 => "bool or u8",
        2..=8 => "u8 or i8",
        9..=16 => "u16 or i16",
        32 => "u32, i32 or f32",
        17..=31 => "u32 or i32",
        64 => "u64, i64 or f64",
        33..=63 => "u64 or i64",
        _ => "an array",
    }
}

#[cfg(test)]
mod tests;
