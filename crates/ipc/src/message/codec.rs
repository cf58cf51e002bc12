//! Head of every message, numbers with the names of their fields, and rows of bounded length.

use std::ops::Deref;

use thiserror::Error;

use super::{DecodeError, Found, MOST_AXES, NoRoom, VERSION};
use crate::bytes::{self, Writer};

/// Up to [`MOST_AXES`] values, one for each axis of a message, without allocation.
#[derive(Clone, Copy)]
pub struct Rows<T> {
    rows: [T; MOST_AXES],
    length: usize,
}

/// More values than a message can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected values for at most {MOST_AXES} axes in one message, found {found}")]
pub struct TooLong {
    /// Number of values given.
    pub found: usize,
}

impl<T: Copy + Default> Rows<T> {
    /// Creates an empty row.
    #[must_use]
    pub fn new() -> Self {
        Self { rows: [T::default(); MOST_AXES], length: 0 }
    }

    /// Creates a row of these values.
    ///
    /// # Errors
    /// There are more than [`MOST_AXES`].
    pub fn from_slice(values: &[T]) -> Result<Self, TooLong> {
        let mut rows = Self::new();
        let room = rows.rows.get_mut(..values.len()).ok_or(TooLong { found: values.len() })?;
        room.copy_from_slice(values);
        rows.length = values.len();
        Ok(rows)
    }

    /// Appends a value.
    ///
    /// # Errors
    /// The row holds [`MOST_AXES`] values already.
    pub fn push(&mut self, value: T) -> Result<(), TooLong> {
        *self.rows.get_mut(self.length).ok_or(TooLong { found: self.length + 1 })? = value;
        self.length += 1;
        Ok(())
    }
}

impl<T: Copy + Default> Default for Rows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Rows<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.rows[..self.length]
    }
}

impl<T: PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// First sixteen bytes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) kind: u16,
    pub(super) number: u32,
    pub(super) id: u64,
}

/// Bytes of a [`Head`].
pub(super) const HEAD: usize = 16;

/// Begins a message of `length` bytes in total.
pub(super) fn begin(buffer: &mut [u8], length: usize, head: Head) -> Result<Writer<'_>, NoRoom> {
    let found = buffer.len();
    let mut writer = Writer::new(buffer, length).ok_or(NoRoom { needed: length, found })?;
    writer.u16(head.kind);
    writer.u16(VERSION);
    writer.u32(head.number);
    writer.u64(head.id);
    Ok(writer)
}

/// Reader of one message.
pub(super) struct Reader<'a> {
    bytes: bytes::Reader<'a>,
    /// Length of the whole message.
    length: usize,
}

impl<'a> Reader<'a> {
    /// Reads the head.
    pub(super) fn begin(bytes: &'a [u8]) -> Result<(Self, Head), DecodeError> {
        let mut reader = Self { bytes: bytes::Reader::new(bytes), length: bytes.len() };
        let kind = u16::from_le_bytes(reader.take("kind")?);
        let version = u16::from_le_bytes(reader.take("version")?);
        if version != VERSION {
            let found = Found::Number(version.into());
            return Err(DecodeError { field: "version", expected: "1", found });
        }
        let number = u32::from_le_bytes(reader.take("number")?);
        let id = u64::from_le_bytes(reader.take("id")?);
        Ok((reader, Head { kind, number, id }))
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        self.take(field).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        self.take(field).map(u64::from_le_bytes)
    }

    /// Reads a finite number.
    pub(super) fn f64(&mut self, field: &'static str) -> Result<f64, DecodeError> {
        let number = f64::from_le_bytes(self.take(field)?);
        let wrong = DecodeError { field, expected: "a finite number", found: Found::Real(number) };
        number.is_finite().then_some(number).ok_or(wrong)
    }

    /// Reads `count` finite numbers.
    pub(super) fn row(&mut self, field: &'static str, count: usize) -> Result<Rows<f64>, DecodeError> {
        let mut row = Rows::new();
        for _ in 0..count {
            let number = self.f64(field)?;
            row.push(number).map_err(|error| too_many(field, error.found))?;
        }
        Ok(row)
    }

    /// Fails if bytes are left.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        let found = Found::Bytes(self.length);
        let more = DecodeError { field: "length", expected: "nothing after its last field", found };
        if self.bytes.is_empty() { Ok(()) } else { Err(more) }
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let found = Found::Bytes(self.length);
        let expected = "a message long enough to hold it";
        self.bytes.take().ok_or(DecodeError { field, expected, found })
    }
}

/// Checks the number of axes given in a message.
pub(super) fn axes(count: u32) -> Result<usize, DecodeError> {
    let axes = count as usize;
    if (1..=MOST_AXES).contains(&axes) { Ok(axes) } else { Err(too_many("number of axes", axes)) }
}

fn too_many(field: &'static str, found: usize) -> DecodeError {
    DecodeError { field, expected: "1 to 64", found: Found::Number(found as u64) }
}

pub(super) fn unknown_kind(expected: &'static str, head: Head) -> DecodeError {
    DecodeError { field: "kind", expected, found: Found::Number(head.kind.into()) }
}

/// Checks that the number is 0 in the head of a kind that gives it no meaning.
pub(super) fn no_number(head: Head) -> Result<(), DecodeError> {
    let found = Found::Number(head.number.into());
    let wrong = DecodeError { field: "number", expected: "0, for this kind", found };
    if head.number == 0 { Ok(()) } else { Err(wrong) }
}
