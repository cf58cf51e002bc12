//! Numbers in little-endian bytes, one after the other. Lengths are checked before, once for the whole message.

pub(super) struct Writer<'a> {
    bytes: &'a mut [u8],
    place: usize,
}

impl<'a> Writer<'a> {
    /// A writer to the front of `bytes`, or `None` if they are fewer than `length`.
    pub(super) fn new(bytes: &'a mut [u8], length: usize) -> Option<Self> {
        (bytes.len() >= length).then_some(Self { bytes, place: 0 })
    }

    fn put(&mut self, value: &[u8]) {
        let end = self.place + value.len();
        self.bytes[self.place..end].copy_from_slice(value);
        self.place = end;
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    pub(super) fn f32(&mut self, value: f32) {
        self.put(&value.to_le_bytes());
    }

    pub(super) fn f64s(&mut self, values: &[f64]) {
        values.iter().for_each(|value| self.put(&value.to_le_bytes()));
    }

    /// Bytes written.
    pub(super) fn written(&self) -> usize {
        self.place
    }
}

pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next bytes, zeros where there are none: lengths were checked.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        match self.rest.split_first_chunk::<N>() {
            Some((value, rest)) => {
                self.rest = rest;
                *value
            }
            None => [0; N],
        }
    }

    pub(super) fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    pub(super) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub(super) fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }

    pub(super) fn f64(&mut self) -> f64 {
        f64::from_le_bytes(self.take())
    }

    pub(super) fn f64s<const N: usize>(&mut self) -> [f64; N] {
        std::array::from_fn(|_| self.f64())
    }
}
