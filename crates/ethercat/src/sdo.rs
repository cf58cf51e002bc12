//! Values of SDOs: little-endian, of the length their type has (ETG.1000.6, 5.6.2; CiA 301, 7.1.4).

use alloc::string::String;
use alloc::vec::Vec;
use core::any::type_name;

use thiserror::Error;

use crate::main_device::{MailboxRequest, MailboxService};

/// A value that an object's entry can hold: `bool`, integers, `f32`, `f64`, `[u8; N]`, and with any
/// length `Vec<u8>` and `String`. Sealed.
pub trait SdoValue: Sized + sealed::Sealed {
    /// Bytes to keep ready for it.
    const CAPACITY: usize;

    /// The value of these bytes.
    ///
    /// # Errors
    /// Bytes of another length.
    fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError>;

    /// Its bytes.
    fn to_bytes(&self) -> Vec<u8>;
}

/// An object's value has another length than the type it is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{found} bytes, which {wanted} does not take ({expected} bytes)")]
pub struct SdoValueError {
    /// Bytes there.
    pub found: usize,
    /// Bytes of the type.
    pub expected: usize,
    /// The requested type.
    pub wanted: &'static str,
}

impl MailboxRequest {
    /// Reads the entry `index`:`sub_index` of the SubDevice at `position`, as a `T`.
    #[must_use]
    pub fn upload<T: SdoValue>(position: u16, index: u16, sub_index: u8) -> Self {
        let service = MailboxService::Upload { index, sub_index, complete_access: false };
        Self { position, service, data: Vec::with_capacity(T::CAPACITY) }
    }

    /// Writes `value` to the entry `index`:`sub_index` of the SubDevice at `position`.
    #[must_use]
    pub fn download<T: SdoValue>(position: u16, index: u16, sub_index: u8, value: &T) -> Self {
        let service = MailboxService::Download { index, sub_index, complete_access: false };
        Self { position, service, data: value.to_bytes() }
    }
}

/// Bytes kept ready for a value of any length.
const LONGEST: usize = 64 << 10;

fn exactly<T, const N: usize>(bytes: &[u8]) -> Result<[u8; N], SdoValueError> {
    let wrong = |_| SdoValueError { found: bytes.len(), expected: N, wanted: type_name::<T>() };
    bytes.try_into().map_err(wrong)
}

macro_rules! numbers {
    ($($name:ty)*) => {$(
        impl SdoValue for $name {
            const CAPACITY: usize = size_of::<Self>();

            fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError> {
                exactly::<Self, { size_of::<Self>() }>(bytes).map(Self::from_le_bytes)
            }

            fn to_bytes(&self) -> Vec<u8> {
                self.to_le_bytes().into()
            }
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl SdoValue for bool {
    const CAPACITY: usize = 1;

    fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError> {
        exactly::<Self, 1>(bytes).map(|[byte]| byte != 0)
    }

    fn to_bytes(&self) -> Vec<u8> {
        [u8::from(*self)].into()
    }
}

impl<const N: usize> SdoValue for [u8; N] {
    const CAPACITY: usize = N;

    fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError> {
        exactly::<Self, N>(bytes)
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.as_slice().into()
    }
}

impl SdoValue for Vec<u8> {
    const CAPACITY: usize = LONGEST;

    fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError> {
        Ok(bytes.into())
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.clone()
    }
}

impl SdoValue for String {
    const CAPACITY: usize = LONGEST;

    /// VISIBLE_STRING, up to its first zero; text that is no UTF-8 is taken as ISO 8859-1.
    fn from_bytes(bytes: &[u8]) -> Result<Self, SdoValueError> {
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let text = &bytes[..end];
        Ok(core::str::from_utf8(text)
            .map_or_else(|_| text.iter().copied().map(char::from).collect(), Self::from))
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().into()
    }
}

mod sealed {
    use alloc::string::String;
    use alloc::vec::Vec;

    pub trait Sealed {}

    macro_rules! sealed {
        ($($name:ty)*) => {$(impl Sealed for $name {})*};
    }

    sealed! { bool u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 Vec<u8> String }

    impl<const N: usize> Sealed for [u8; N] {}
}

#[cfg(test)]
mod tests {
    use core::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn there_and_back<T: SdoValue + PartialEq + Debug>(value: T) {
        let bytes = value.to_bytes();
        assert!(bytes.len() <= T::CAPACITY);
        assert_eq!(T::from_bytes(&bytes), Ok(value));
    }

    /// Read as a `T`, or refused with its length.
    fn taken_at_its_length<T: SdoValue + PartialEq + Debug>(bytes: &[u8]) {
        match T::from_bytes(bytes) {
            Ok(value) => assert_eq!((bytes.len(), value.to_bytes()), (T::CAPACITY, bytes.to_vec())),
            Err(error) => {
                assert_eq!((error.found, error.expected), (bytes.len(), T::CAPACITY));
                assert_ne!(error.found, error.expected);
            }
        }
    }

    proptest! {
        // feature(protocol): SDO values by type
        #[test]
        fn every_value_is_read_as_it_was_written(
            bits: u64, single in -1e30_f32..1e30, double in -1e300_f64..1e300, truth: bool, bytes: Vec<u8>, text in "[^\0]{0,20}"
        ) {
            there_and_back(bits as u8);
            there_and_back(bits as i8);
            there_and_back(bits as u16);
            there_and_back(bits as i16);
            there_and_back(bits as u32);
            there_and_back(bits as i32);
            there_and_back(bits);
            there_and_back(bits as i64);
            there_and_back(single);
            there_and_back(double);
            there_and_back(truth);
            there_and_back(bits.to_be_bytes());
            there_and_back(bytes);
            there_and_back(text);
        }

        // feature(protocol): SDO values by type
        #[test]
        fn another_length_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            taken_at_its_length::<u8>(&bytes);
            taken_at_its_length::<i16>(&bytes);
            taken_at_its_length::<u32>(&bytes);
            taken_at_its_length::<i64>(&bytes);
            taken_at_its_length::<[u8; 6]>(&bytes);
        }
    }

    #[test]
    fn text_ends_at_its_first_zero_and_is_read_in_either_encoding() {
        assert_eq!(String::from_bytes(b"EL2008\0\0"), Ok("EL2008".to_owned()));
        assert_eq!(String::from_bytes(b"20 \xB5s"), Ok("20 \u{b5}s".to_owned()));
        let error = u32::from_bytes(&[1]).unwrap_err().to_string();
        assert_eq!(error, "1 bytes, which u32 does not take (4 bytes)");
    }
}
