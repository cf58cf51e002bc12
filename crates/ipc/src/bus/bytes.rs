//! Bytes in a text: hexadecimal digits.

use std::fmt::Write as _;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::LONGEST_OBJECT;

/// Bytes, in JSON a text of two hexadecimal digits each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(self.0.len() * 2);
        for byte in &self.0 {
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > LONGEST_OBJECT * 2 {
            let found = text.len().div_ceil(2);
            return Err(D::Error::custom(format!("{found} bytes, expected at most {LONGEST_OBJECT}")));
        }
        let byte = |digits: &[u8]| {
            let [high, low] = digits else { return None };
            let digit = |digit: u8| char::from(digit).to_digit(16);
            Some((digit(*high)? * 16 + digit(*low)?) as u8)
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(byte).collect();
        bytes.map(Self).ok_or_else(|| D::Error::custom("expected two hexadecimal digits for each byte"))
    }
}
