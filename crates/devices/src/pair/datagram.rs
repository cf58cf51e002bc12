//! Messages between a device's two tasks: fixed layouts, little-endian, without allocation.

/// Message of a device's channel.
pub trait Datagram {
    /// Length of the longest message, bytes.
    const LARGEST: usize;

    /// Encodes the message at the front of `bytes`, [`Datagram::LARGEST`] long; returns its length.
    fn encode(&self, bytes: &mut [u8]) -> usize;

    /// Decodes a message in place; false if the bytes are none, in which case the value is
    /// unspecified.
    #[must_use]
    fn decode(&mut self, bytes: &[u8]) -> bool;
}

/// Writes consecutive numbers.
pub(crate) struct Put<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Put<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// Appends bytes. If they do not fit they are omitted, which makes the message invalid.
    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        let end = self.length + value.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(value);
            self.length = end;
        }
        self
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn f64(self, value: f64) -> Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn length(self) -> usize {
        self.length
    }
}

/// Reads consecutive numbers; `None` once the bytes run out.
pub(crate) struct Take<'a>(pub(crate) &'a [u8]);

impl Take<'_> {
    fn next<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (value, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*value)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.next().map(u64::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.next().map(u32::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.next().map(u16::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Option<f64> {
        self.next().map(f64::from_le_bytes)
    }

    /// `None` if bytes are left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Request without content: take the next sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Poke;

impl Datagram for Poke {
    const LARGEST: usize = 1;

    fn encode(&self, bytes: &mut [u8]) -> usize {
        Put::new(bytes).bytes(&[1]).length()
    }

    fn decode(&mut self, bytes: &[u8]) -> bool {
        bytes == [1]
    }
}
