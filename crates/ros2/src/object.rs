//! Values of objects as texts, with the names of their types as `onbeat sdo` has them.

use std::str::FromStr;

/// Type of an object's value; integers with their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectType {
    Bool,
    Signed(usize),
    Unsigned(usize),
    Float,
    Double,
    Text,
}

impl FromStr for ObjectType {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Ok(match name {
            "bool" => Self::Bool,
            "int8" => Self::Signed(1),
            "int16" => Self::Signed(2),
            "int32" => Self::Signed(4),
            "int64" => Self::Signed(8),
            "uint8" => Self::Unsigned(1),
            "uint16" => Self::Unsigned(2),
            "uint32" => Self::Unsigned(4),
            "uint64" => Self::Unsigned(8),
            "float" => Self::Float,
            "double" => Self::Double,
            "string" => Self::Text,
            _ => {
                return Err(format!(
                    "sdo_data_type is `{name}`, expected bool, int8 to int64, uint8 to uint64, float, double or string"
                ));
            }
        })
    }
}

impl ObjectType {
    fn bytes(self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Signed(bytes) | Self::Unsigned(bytes) => Some(bytes),
            Self::Float => Some(4),
            Self::Double => Some(8),
            Self::Text => None,
        }
    }

    /// Value as text, and as the nearest number; NaN of a text.
    ///
    /// # Errors
    /// Bytes that are no such value.
    pub(crate) fn decode(self, bytes: &[u8]) -> Result<(String, f64), String> {
        if let Some(expected) = self.bytes().filter(|&expected| expected != bytes.len()) {
            let found = bytes.len();
            return Err(format!(
                "the object has {found} bytes, expected {expected}: choose another sdo_data_type"
            ));
        }
        let mut eight = [0; 8];
        if self != Self::Text {
            eight[..bytes.len()].copy_from_slice(bytes);
        }
        let word = u64::from_le_bytes(eight);
        Ok(match self {
            Self::Bool => ((word != 0).to_string(), if word == 0 { 0.0 } else { 1.0 }),
            Self::Unsigned(_) => (word.to_string(), word as f64),
            Self::Signed(bytes) => {
                let unused = 64 - 8 * bytes;
                let value = (word << unused) as i64 >> unused;
                (value.to_string(), value as f64)
            }
            Self::Float => {
                let value = f32::from_bits(word as u32);
                (value.to_string(), value.into())
            }
            Self::Double => (f64::from_bits(word).to_string(), f64::from_bits(word)),
            Self::Text => (String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned(), f64::NAN),
        })
    }

    /// Bytes of a value that is written as text.
    ///
    /// # Errors
    /// A text that is no such value.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, String> {
        let wrong = |expected: String| format!("sdo_value is `{text}`, expected {expected}");
        let whole = |lowest: i128, highest: i128, bytes: usize| {
            let value = text.parse::<i128>().ok().filter(|value| (lowest..=highest).contains(value));
            let value = value.ok_or_else(|| wrong(format!("a whole number from {lowest} to {highest}")))?;
            Ok(value.to_le_bytes()[..bytes].to_vec())
        };
        match self {
            Self::Bool => match text {
                "true" | "1" => Ok(vec![1]),
                "false" | "0" => Ok(vec![0]),
                _ => Err(wrong("true or false".into())),
            },
            Self::Signed(bytes) => {
                let half = 1_i128 << (8 * bytes - 1);
                whole(-half, half - 1, bytes)
            }
            Self::Unsigned(bytes) => whole(0, (1_i128 << (8 * bytes)) - 1, bytes),
            Self::Float => text
                .parse()
                .map(|value: f32| value.to_le_bytes().into())
                .map_err(|_| wrong("a number".into())),
            Self::Double => text
                .parse()
                .map(|value: f64| value.to_le_bytes().into())
                .map_err(|_| wrong("a number".into())),
            Self::Text => Ok(text.as_bytes().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(ros2): `~/get_sdo`, `~/set_sdo`, `~/al_states` of the running bus
    #[test]
    fn values_come_back_and_what_is_none_is_one_sentence() {
        for (name, text, bytes) in [
            ("bool", "true", &[1][..]),
            ("int8", "-128", &[0x80]),
            ("int16", "-2", &[0xFE, 0xFF]),
            ("uint32", "4294904577", &[0x01, 0x0B, 0xFF, 0xFF]),
            ("uint64", "18446744073709551615", &[0xFF; 8]),
            ("int64", "-9223372036854775808", &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            ("float", "1.5", &[0, 0, 0xC0, 0x3F]),
            ("double", "-0.5", &[0, 0, 0, 0, 0, 0, 0xE0, 0xBF]),
            ("string", "AKD", b"AKD"),
        ] {
            let object_type: ObjectType = name.parse().unwrap();
            assert_eq!(object_type.encode(text).as_deref(), Ok(bytes), "{name}");
            assert_eq!(object_type.decode(bytes).unwrap().0, text, "{name}");
        }
        for (name, text, why) in [
            ("uint8", "256", "a whole number from 0 to 255"),
            ("int8", "-129", "from -128 to 127"),
            ("uint16", "-1", "from 0 to 65535"),
            ("bool", "7", "true or false"),
            ("float", "x", "a number"),
        ] {
            let error = name.parse::<ObjectType>().unwrap().encode(text).unwrap_err();
            assert!(error.contains(why) && error.contains(text), "{error}");
        }
        assert!("uint24".parse::<ObjectType>().unwrap_err().contains("`uint24`"));
        let error = ObjectType::Unsigned(4).decode(&[1, 2]).unwrap_err();
        assert!(error.contains("2 bytes, expected 4"), "{error}");
    }
}
