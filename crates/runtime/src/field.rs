//! Values in the process image: little-endian, of any bit length at any bit offset.

use ethercat::pdo::PdoField;

/// Where a value of up to 32 bits lies among a SubDevice's inputs or outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    bit_offset: usize,
    bit_length: usize,
}

impl Field {
    /// The field, if it holds a number of 1 to 32 bits and lies within `bytes` bytes.
    pub(crate) fn new(field: PdoField, bytes: usize) -> Option<Self> {
        let PdoField { bit_offset, bit_length } = field;
        let fits = (1..=32).contains(&bit_length) && bit_offset + bit_length <= bytes * 8;
        fits.then_some(Self { bit_offset, bit_length })
    }

    /// The value, with zeros above it; 0 where `image` ends before the field.
    pub(crate) fn unsigned(self, image: &[u8]) -> u32 {
        let Some(bytes) = image.get(self.bytes()) else { return 0 };
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        (u64::from_le_bytes(wide) >> self.shift()) as u32 & self.mask()
    }

    /// The value, its highest bit taken as the sign.
    pub(crate) fn signed(self, image: &[u8]) -> i32 {
        let unused = 32 - self.bit_length;
        (self.unsigned(image) << unused) as i32 >> unused
    }

    /// Writes the value's low bits and leaves its neighbours alone.
    pub(crate) fn write(self, image: &mut [u8], value: u32) {
        let Some(bytes) = image.get_mut(self.bytes()) else { return };
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let mask = u64::from(self.mask()) << self.shift();
        let value = u64::from(value) << self.shift() & mask;
        let wide = (u64::from_le_bytes(wide) & !mask | value).to_le_bytes();
        bytes.copy_from_slice(&wide[..bytes.len()]);
    }

    /// At most five: 32 bits that start inside a byte.
    fn bytes(self) -> std::ops::Range<usize> {
        self.bit_offset / 8..(self.bit_offset + self.bit_length).div_ceil(8)
    }

    fn shift(self) -> usize {
        self.bit_offset % 8
    }

    fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bit_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bit_offset: usize, bit_length: usize) -> Field {
        Field::new(PdoField { bit_offset, bit_length }, 16).unwrap()
    }

    #[test]
    fn aligned_values_are_little_endian() {
        let image = [0x37, 0x02, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(field(0, 16).unsigned(&image), 0x0237);
        assert_eq!(field(16, 32).signed(&image), -2);
        assert_eq!(field(16, 8).signed(&image), -2);
    }

    #[test]
    fn whatever_is_written_is_read_back_and_the_neighbours_stay() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..10_000 {
            let bit_length = random.usize(1..=32);
            let field = field(random.usize(0..=128 - bit_length), bit_length);
            let before = u128::from_le_bytes(std::array::from_fn(|_| random.u8(..)));
            let mut image = before.to_le_bytes();
            let value = random.u32(..);
            field.write(&mut image, value);
            assert_eq!(field.unsigned(&image), value & field.mask());
            let mask = u128::from(field.mask()) << field.bit_offset;
            assert_eq!(u128::from_le_bytes(image) & !mask, before & !mask);
        }
    }

    #[test]
    fn a_field_outside_the_image_is_none() {
        assert_eq!(Field::new(PdoField { bit_offset: 120, bit_length: 9 }, 16), None);
        assert_eq!(Field::new(PdoField { bit_offset: 0, bit_length: 33 }, 16), None);
        assert_eq!(Field::new(PdoField { bit_offset: 0, bit_length: 0 }, 16), None);
        assert_eq!(field(0, 16).unsigned(&[1]), 0);
    }
}
