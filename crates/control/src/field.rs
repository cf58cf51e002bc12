//! Fields of up to 32 bits in the process image: numbers, whatever width a SubDevice maps them with.

use ethercat::pdo::PdoField;

/// Place of a value of up to 32 bits among a SubDevice's inputs or outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field32(PdoField);

impl Field32 {
    /// The field, if it holds a number of 1 to 32 bits and lies within `bytes` bytes.
    pub(crate) fn new(field: PdoField, bytes: usize) -> Option<Self> {
        let PdoField { bit_offset, bit_length } = field;
        let fits = (1..=32).contains(&bit_length) && bit_offset + bit_length <= bytes * 8;
        fits.then_some(Self(field))
    }

    /// The value, with zeros above it; 0 where `image` ends before the field.
    pub(crate) fn unsigned(self, image: &[u8]) -> u32 {
        self.0.read(image) as u32
    }

    /// The value, its highest bit taken as the sign.
    pub(crate) fn signed(self, image: &[u8]) -> i32 {
        self.0.read_signed(image) as i32
    }

    /// Writes the value's low bits and leaves its neighbours alone.
    pub(crate) fn write(self, image: &mut [u8], value: u32) {
        self.0.write(image, value.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bit_offset: usize, bit_length: usize) -> Field32 {
        Field32::new(PdoField { bit_offset, bit_length }, 16).unwrap()
    }

    #[test]
    fn aligned_values_are_little_endian() {
        let image = [0x37, 0x02, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(field(0, 16).unsigned(&image), 0x0237);
        assert_eq!(field(16, 32).signed(&image), -2);
        assert_eq!(field(16, 8).signed(&image), -2);
    }

    #[test]
    fn a_field_outside_the_image_is_none() {
        assert_eq!(Field32::new(PdoField { bit_offset: 120, bit_length: 9 }, 16), None);
        assert_eq!(Field32::new(PdoField { bit_offset: 0, bit_length: 33 }, 16), None);
        assert_eq!(Field32::new(PdoField { bit_offset: 0, bit_length: 0 }, 16), None);
        assert_eq!(field(0, 16).unsigned(&[1]), 0);
    }
}
