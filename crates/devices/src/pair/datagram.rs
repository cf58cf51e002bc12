//! What passes between a device's two tasks: fixed layouts, little-endian, without allocation.

/// A message of a device's channel.
pub trait Datagram {
    /// Bytes of the longest.
    const LARGEST: usize;

    /// Writes it to the front of `bytes`, which are [`Datagram::LARGEST`]; how many it took.
    fn encode(&self, bytes: &mut [u8]) -> usize;

    /// Reads one in place of what this was; `false` if it is none, and this may be anything then.
    #[must_use]
    fn decode(&mut self, bytes: &[u8]) -> bool;
}

/// Numbers written one after the other.
pub(crate) struct Put<'a> {
    bytes: &'a mut [u8],
    length: usize,
}

impl<'a> Put<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, length: 0 }
    }

    /// The next bytes. What finds no room is left out, and the message is no message then.
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

/// Numbers read one after the other; `None` from where there are no more.
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

    /// Nothing is left.
    pub(crate) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// "Go on": a request that says no more than that.
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
