//! Values of CoE objects as text, and their bytes (CiA 301, 7.1.3: little-endian).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// Data type of an object, under the names integrators use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectType {
    /// BOOLEAN, one byte.
    Bool,
    /// INTEGER8 to INTEGER64: this many bytes, two's complement.
    Signed(u8),
    /// UNSIGNED8 to UNSIGNED64: this many bytes.
    Unsigned(u8),
    /// REAL32.
    Float,
    /// REAL64.
    Double,
    /// VISIBLE_STRING.
    Text,
    /// OCTET_STRING: bytes written as hexadecimal digits.
    Octets,
}

/// All types with their names.
pub const OBJECT_TYPES: [(&str, ObjectType); 13] = [
    ("bool", ObjectType::Bool),
    ("int8", ObjectType::Signed(1)),
    ("int16", ObjectType::Signed(2)),
    ("int32", ObjectType::Signed(4)),
    ("int64", ObjectType::Signed(8)),
    ("uint8", ObjectType::Unsigned(1)),
    ("uint16", ObjectType::Unsigned(2)),
    ("uint32", ObjectType::Unsigned(4)),
    ("uint64", ObjectType::Unsigned(8)),
    ("float", ObjectType::Float),
    ("double", ObjectType::Double),
    ("string", ObjectType::Text),
    ("octet_string", ObjectType::Octets),
];

/// A value, before its type determines its number of bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectValue {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any number.
    Real(f64),
    /// A string.
    Text(String),
    /// Bytes.
    Octets(Vec<u8>),
}

/// Reason for which a value does not fit a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectValueError {
    /// Value or bytes found.
    pub found: String,
    /// Values of the type.
    pub expected: String,
}

impl ObjectType {
    /// Encodes `value` as this type.
    ///
    /// # Errors
    /// The value is of another kind or out of the type's range.
    pub fn encode(self, value: &ObjectValue) -> Result<Vec<u8>, ObjectValueError> {
        let refused = || self.refused(value.to_string());
        match (self, value) {
            (Self::Bool, ObjectValue::Bool(value)) => Ok(vec![u8::from(*value)]),
            (Self::Signed(_) | Self::Unsigned(_), ObjectValue::Integer(value)) => {
                let (lowest, highest) = self.range();
                let length = self.length().ok_or_else(refused)?;
                let inside = (lowest..=highest).contains(value);
                inside.then(|| value.to_le_bytes()[..length].to_vec()).ok_or_else(refused)
            }
            (Self::Float, ObjectValue::Integer(value)) => Ok((*value as f32).to_le_bytes().to_vec()),
            (Self::Float, ObjectValue::Real(value)) => Ok((*value as f32).to_le_bytes().to_vec()),
            (Self::Double, ObjectValue::Integer(value)) => Ok((*value as f64).to_le_bytes().to_vec()),
            (Self::Double, ObjectValue::Real(value)) => Ok(value.to_le_bytes().to_vec()),
            (Self::Text, ObjectValue::Text(value)) => Ok(value.as_bytes().to_vec()),
            (Self::Octets, ObjectValue::Text(value)) => hexadecimal(value).ok_or_else(refused),
            (Self::Octets, ObjectValue::Octets(value)) => Ok(value.clone()),
            _ => Err(refused()),
        }
    }

    /// Encodes the value in `text` as this type: numbers decimal or `0x...`.
    ///
    /// # Errors
    /// A text that is not a value of this type.
    pub fn encode_text(self, text: &str) -> Result<Vec<u8>, ObjectValueError> {
        let value = match self {
            Self::Bool => text.parse().map(ObjectValue::Bool).ok(),
            Self::Signed(_) | Self::Unsigned(_) => integer(text).map(ObjectValue::Integer),
            Self::Float | Self::Double => text.parse().map(ObjectValue::Real).ok(),
            Self::Text | Self::Octets => Some(ObjectValue::Text(text.to_owned())),
        };
        self.encode(&value.ok_or_else(|| self.refused(format!("\"{text}\"")))?)
    }

    /// Decodes the value in `bytes`.
    ///
    /// # Errors
    /// A number of bytes that differs from the type's.
    pub fn decode(self, bytes: &[u8]) -> Result<ObjectValue, ObjectValueError> {
        if self.length().is_some_and(|length| length != bytes.len()) {
            let found = format!("{} bytes", bytes.len());
            let expected = format!("{} of {self}", self.length().unwrap_or(0));
            return Err(ObjectValueError { found, expected });
        }
        Ok(match self {
            Self::Bool => ObjectValue::Bool(bytes[0] != 0),
            Self::Signed(_) | Self::Unsigned(_) => ObjectValue::Integer(self.integer_of(bytes)),
            Self::Float => ObjectValue::Real(f64::from(f32::from_le_bytes(padded(bytes)))),
            Self::Double => ObjectValue::Real(f64::from_le_bytes(padded(bytes))),
            Self::Text => {
                ObjectValue::Text(String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned())
            }
            Self::Octets => ObjectValue::Octets(bytes.to_vec()),
        })
    }

    /// Bytes of every value, or `None` where the length varies.
    #[must_use]
    pub fn length(self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Signed(bytes) | Self::Unsigned(bytes) => Some(usize::from(bytes)),
            Self::Float => Some(4),
            Self::Double => Some(8),
            Self::Text | Self::Octets => None,
        }
    }

    /// Type with this number (CiA 301, 7.4.7, Table 44), or `None` for types without a name here.
    #[must_use]
    pub const fn from_data_type(number: u16) -> Option<Self> {
        Some(match number {
            0x0001 => Self::Bool,
            0x0002 => Self::Signed(1),
            0x0003 => Self::Signed(2),
            0x0004 => Self::Signed(4),
            0x0015 => Self::Signed(8),
            0x0005 => Self::Unsigned(1),
            0x0006 => Self::Unsigned(2),
            0x0007 => Self::Unsigned(4),
            0x001B => Self::Unsigned(8),
            0x0008 => Self::Float,
            0x0011 => Self::Double,
            0x0009 => Self::Text,
            0x000A => Self::Octets,
            _ => return None,
        })
    }

    fn integer_of(self, bytes: &[u8]) -> i128 {
        let unsigned = i128::from(u64::from_le_bytes(padded(bytes)));
        let (_, highest) = self.range();
        if unsigned > highest { unsigned - (1 << (8 * bytes.len())) } else { unsigned }
    }

    /// Lowest and highest whole number.
    fn range(self) -> (i128, i128) {
        match self {
            Self::Signed(bytes) => (-(1 << (8 * bytes - 1)), (1 << (8 * bytes - 1)) - 1),
            Self::Unsigned(bytes) => (0, (1 << (8 * u32::from(bytes))) - 1),
            _ => (0, 0),
        }
    }

    /// Error of a value, or of a text in quotes, that is found in its place.
    fn refused(self, found: String) -> ObjectValueError {
        let is_whole = matches!(self, Self::Signed(_) | Self::Unsigned(_));
        let hint = if is_whole { without_point(found.trim_matches('"')) } else { "" };
        ObjectValueError { expected: format!("{}{hint}", self.expectation()), found }
    }

    fn expectation(self) -> String {
        match self {
            Self::Bool => "true or false".to_owned(),
            Self::Signed(_) | Self::Unsigned(_) => {
                let (lowest, highest) = self.range();
                format!("a whole number from {lowest} to {highest} ({self})")
            }
            Self::Float | Self::Double => format!("a number ({self})"),
            Self::Text => "a string".to_owned(),
            Self::Octets => "an even number of hexadecimal digits".to_owned(),
        }
    }
}

impl fmt::Display for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = OBJECT_TYPES.iter().find(|(_, it)| it == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl FromStr for ObjectType {
    type Err = ObjectValueError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        OBJECT_TYPES.iter().find(|(name, _)| *name == text).map(|&(_, it)| it).ok_or_else(|| {
            ObjectValueError {
                found: format!("type \"{text}\""),
                expected: format!("one of {}", OBJECT_TYPES.map(|(name, _)| name).join(", ")),
            }
        })
    }
}

impl fmt::Display for ObjectValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "found {}, expected {}", self.found, self.expected)
    }
}

impl core::error::Error for ObjectValueError {}

impl fmt::Display for ObjectValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            // As a number with a point, also where it is whole.
            Self::Real(value) => write!(f, "{value:?}"),
            Self::Text(value) => write!(f, "\"{}\"", value.escape_debug()),
            Self::Octets(value) => value.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// Words behind the whole numbers that are expected, where `text` is a number that only looks like
/// none: `1e2`, `2.0`.
#[must_use]
pub fn without_point(text: &str) -> &'static str {
    let is_other = text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok();
    if is_other { ", without point or exponent" } else { "" }
}

fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    let length = bytes.len().min(N);
    padded[..length].copy_from_slice(&bytes[..length]);
    padded
}

fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None => digits.parse::<u64>().ok()?,
    };
    Some(sign * i128::from(magnitude))
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> ObjectType {
        name.parse().unwrap()
    }

    #[test]
    fn texts_become_bytes_and_bytes_the_same_value() {
        for (name, text, bytes) in [
            ("bool", "true", vec![1]),
            ("int8", "-128", vec![0x80]),
            ("uint8", "0xff", vec![0xFF]),
            ("int16", "-2", vec![0xFE, 0xFF]),
            ("uint32", "305419896", vec![0x78, 0x56, 0x34, 0x12]),
            ("int64", "-9223372036854775808", vec![0, 0, 0, 0, 0, 0, 0, 0x80]),
            ("uint64", "18446744073709551615", vec![0xFF; 8]),
            ("float", "1.5", 1.5_f32.to_le_bytes().to_vec()),
            ("double", "-0.1", (-0.1_f64).to_le_bytes().to_vec()),
            ("string", "AKD", b"AKD".to_vec()),
            ("octet_string", "00fF", vec![0x00, 0xFF]),
        ] {
            let value_type = of(name);
            let encoded = value_type.encode_text(text).unwrap();
            assert_eq!(encoded, bytes, "{name} {text}");
            assert_eq!(value_type.encode(&value_type.decode(&bytes).unwrap()), Ok(bytes), "{name} {text}");
        }
    }

    #[test]
    fn values_outside_their_type_are_refused() {
        for (name, text) in [
            ("bool", "1"),
            ("uint8", "256"),
            ("uint8", "-1"),
            ("int8", "128"),
            ("int16", "0x8000"),
            ("uint64", "18446744073709551616"),
            ("uint32", "ten"),
            ("uint32", "0x-1"),
            ("float", "fast"),
            ("octet_string", "abc"),
            ("octet_string", "zz"),
        ] {
            assert!(of(name).encode_text(text).is_err(), "{name} {text}");
        }
        for (value, found) in [("1e2", "\"1e2\""), ("2.0", "\"2.0\"")] {
            let error = of("uint8").encode_text(value).unwrap_err();
            let expected = "a whole number from 0 to 255 (uint8), without point or exponent";
            assert_eq!((error.found.as_str(), error.expected.as_str()), (found, expected));
        }
        let error = of("uint8").encode(&ObjectValue::Real(1e2)).unwrap_err();
        assert_eq!(error.found, "100.0");
        assert!(error.expected.ends_with(", without point or exponent"), "{error}");
        assert_eq!(
            of("uint8").encode_text("ten").unwrap_err().expected,
            "a whole number from 0 to 255 (uint8)"
        );
        assert!(of("uint16").decode(&[1]).is_err());
        assert!("u32".parse::<ObjectType>().is_err());
    }
}
