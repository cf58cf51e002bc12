//! Little-endian numbers in consecutive bytes.

/// Writes numbers into a buffer that must be filled exactly.
pub(crate) struct Writer<'a> {
    bytes: &'a mut [u8],
    place: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer of `length` bytes at the front of `bytes`; `None` if there are fewer.
    pub(crate) fn new(bytes: &'a mut [u8], length: usize) -> Option<Self> {
        Some(Self { bytes: bytes.get_mut(..length)?, place: 0 })
    }

    fn put(&mut self, value: &[u8]) {
        let end = self.place + value.len();
        self.bytes[self.place..end].copy_from_slice(value);
        self.place = end;
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(crate) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn f32(&mut self, value: f32) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        self.put(&value.to_le_bytes());
    }

    pub(crate) fn f64s(&mut self, values: &[f64]) {
        values.iter().for_each(|&value| self.f64(value));
    }

    /// Number of bytes written; every byte must have been filled.
    pub(crate) fn finish(self) -> usize {
        debug_assert_eq!(self.place, self.bytes.len(), "the length it was made for");
        self.place
    }
}

/// Reads numbers until the bytes run out.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes the next `N` bytes; `None` if fewer are left.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (value, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*value)
    }

    /// True if every byte was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }
}
