//! Values in the process image: little-endian, of any bit length at any bit offset.

use core::ops::RangeInclusive;

use super::PdoField;

/// A value that process data can hold: `bool`, integers, `f32`, `f64`, and arrays of these. Sealed.
///
/// An integer takes the widths that no narrower one holds: `u16` and `i16` 9 to 16 bits, `u32` and
/// `i32` 17 to 32. An array takes entries side by side, one or more elements in each; so `[u8; 8]`
/// is a string of eight bytes, and `[bool; 16]` the bits of a word.
pub trait ProcessValue: Copy + sealed::Sealed {
    /// The type of its elements; itself, if it is no array.
    type Element: ProcessElement;

    /// Elements it has.
    const ELEMENTS: usize;

    /// The value in `image`; zeros where the image ends before it.
    #[doc(hidden)]
    fn read(image: &[u8], first: PdoField) -> Self;

    /// Writes the value, and leaves its neighbours alone.
    #[doc(hidden)]
    fn write(self, image: &mut [u8], first: PdoField);
}

/// A value of 1 to 64 bits.
pub trait ProcessElement: Copy + sealed::Sealed {
    /// Bits that it takes.
    const WIDTHS: RangeInclusive<usize>;

    /// The value of `width` bits.
    #[doc(hidden)]
    fn from_bits(bits: u64, width: usize) -> Self;

    /// The nearest value that `width` bits hold.
    #[doc(hidden)]
    fn to_bits(self, width: usize) -> u64;
}

impl<T: ProcessElement> ProcessValue for T {
    type Element = T;
    const ELEMENTS: usize = 1;

    fn read(image: &[u8], first: PdoField) -> Self {
        T::from_bits(first.read(image), first.bit_length)
    }

    fn write(self, image: &mut [u8], first: PdoField) {
        first.write(image, self.to_bits(first.bit_length));
    }
}

impl<T: ProcessElement, const N: usize> ProcessValue for [T; N] {
    type Element = T;
    const ELEMENTS: usize = N;

    fn read(image: &[u8], first: PdoField) -> Self {
        core::array::from_fn(|number| T::read(image, first.element(number)))
    }

    fn write(self, image: &mut [u8], first: PdoField) {
        for (number, value) in self.into_iter().enumerate() {
            value.write(image, first.element(number));
        }
    }
}

impl PdoField {
    /// The field, if it has 1 to `widest` bits and lies within `bytes` bytes.
    #[must_use]
    pub fn within(self, widest: usize, bytes: usize) -> Option<Self> {
        let fits =
            (1..=widest).contains(&self.bit_length) && self.bit_offset + self.bit_length <= bytes * 8;
        fits.then_some(self)
    }

    /// The bits of the field, with zeros above them; 0 if `image` ends before them. Of a field of
    /// more than 64 bits the first 64.
    #[must_use]
    pub fn read(self, image: &[u8]) -> u64 {
        let Some(bytes) = image.get(self.bytes()) else { return 0 };
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        (u128::from_le_bytes(wide) >> self.shift()) as u64 & mask(self.width())
    }

    /// The bits there, the highest taken as the sign.
    #[must_use]
    pub fn read_signed(self, image: &[u8]) -> i64 {
        sign_extended(self.read(image), self.width())
    }

    /// Writes the low bits of `value`, and leaves the neighbours unchanged; nothing if `image` ends
    /// before the field.
    pub fn write(self, image: &mut [u8], value: u64) {
        let Some(bytes) = image.get_mut(self.bytes()) else { return };
        let mut wide = [0; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let mask = u128::from(mask(self.width())) << self.shift();
        let value = u128::from(value) << self.shift() & mask;
        let wide = (u128::from_le_bytes(wide) & !mask | value).to_le_bytes();
        bytes.copy_from_slice(&wide[..bytes.len()]);
    }

    /// The field of the same width `number` widths behind this one.
    fn element(self, number: usize) -> Self {
        Self { bit_offset: self.bit_offset + number * self.bit_length, ..self }
    }

    /// At most nine: 64 bits that start inside a byte.
    fn bytes(self) -> core::ops::Range<usize> {
        self.bit_offset / 8..(self.bit_offset + self.width()).div_ceil(8)
    }

    fn width(self) -> usize {
        self.bit_length.min(64)
    }

    fn shift(self) -> usize {
        self.bit_offset % 8
    }
}

/// So many ones.
fn mask(width: usize) -> u64 {
    match width {
        0 => 0,
        width => u64::MAX >> (64 - width.min(64)),
    }
}

fn sign_extended(bits: u64, width: usize) -> i64 {
    let unused = 64 - width.clamp(1, 64);
    (bits << unused) as i64 >> unused
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty: $widths:expr;)*) => {$(
        impl ProcessElement for $unsigned {
            const WIDTHS: RangeInclusive<usize> = $widths;

            fn from_bits(bits: u64, _: usize) -> Self {
                bits as Self
            }

            fn to_bits(self, width: usize) -> u64 {
                u64::from(self).min(mask(width))
            }
        }

        impl ProcessElement for $signed {
            const WIDTHS: RangeInclusive<usize> = $widths;

            fn from_bits(bits: u64, width: usize) -> Self {
                sign_extended(bits, width) as Self
            }

            fn to_bits(self, width: usize) -> u64 {
                let highest = (mask(width) >> 1) as i64;
                i64::from(self).clamp(-highest - 1, highest) as u64
            }
        }
    )*};
}

integers! {
    u8, i8: 1..=8;
    u16, i16: 9..=16;
    u32, i32: 17..=32;
    u64, i64: 33..=64;
}

impl ProcessElement for bool {
    const WIDTHS: RangeInclusive<usize> = 1..=1;

    fn from_bits(bits: u64, _: usize) -> Self {
        bits != 0
    }

    fn to_bits(self, _: usize) -> u64 {
        self.into()
    }
}

impl ProcessElement for f32 {
    const WIDTHS: RangeInclusive<usize> = 32..=32;

    fn from_bits(bits: u64, _: usize) -> Self {
        Self::from_bits(bits as u32)
    }

    fn to_bits(self, _: usize) -> u64 {
        self.to_bits().into()
    }
}

impl ProcessElement for f64 {
    const WIDTHS: RangeInclusive<usize> = 64..=64;

    fn from_bits(bits: u64, _: usize) -> Self {
        Self::from_bits(bits)
    }

    fn to_bits(self, _: usize) -> u64 {
        self.to_bits()
    }
}

mod sealed {
    pub trait Sealed {}

    macro_rules! sealed {
        ($($name:ty)*) => {$(impl Sealed for $name {})*};
    }

    sealed! { bool u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

    impl<T: Sealed, const N: usize> Sealed for [T; N] {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_outside_the_image_or_too_wide_is_none() {
        let within = |bit_offset, bit_length| PdoField { bit_offset, bit_length }.within(32, 16).is_some();
        assert!(within(0, 1) && within(96, 32) && within(120, 8));
        assert!(!within(120, 9) && !within(0, 33) && !within(0, 0));
    }

    #[test]
    fn aligned_values_are_little_endian() {
        let image = [0x37, 0x02, 0xFE, 0xFF, 0xFF, 0xFF];
        let field = |bit_offset, bit_length| PdoField { bit_offset, bit_length };
        assert_eq!(field(0, 16).read(&image), 0x0237);
        assert_eq!((field(16, 32).read_signed(&image), field(16, 8).read_signed(&image)), (-2, -2));
        assert_eq!(field(0, 16).read(&[1]), 0);
    }
}
