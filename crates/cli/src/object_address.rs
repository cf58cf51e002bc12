//! Names of objects as people write them: `0x6041`, `0x1018:1`.

use std::fmt;
use std::str::FromStr;

/// An object's index and sub-index, or the index alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectAddress {
    pub(crate) index: u16,
    pub(crate) sub_index: u8,
}

/// True of the index of an object, with its prefix and without a sub-index.
pub(crate) fn is_index(text: &str) -> bool {
    text.starts_with("0x") && !text.contains(':') && text.parse::<ObjectAddress>().is_ok()
}

impl FromStr for ObjectAddress {
    type Err = String;

    /// `INDEX` or `INDEX:SUB`, both hexadecimal as data sheets print them, `0x` where one likes.
    fn from_str(text: &str) -> Result<Self, String> {
        let (index, sub_index) = text.split_once(':').unwrap_or((text, "0"));
        let digits =
            |text: &str| text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text).to_owned();
        let index = u16::from_str_radix(&digits(index), 16);
        let sub_index = u8::from_str_radix(&digits(sub_index), 16);
        match (index, sub_index) {
            (Ok(index), Ok(sub_index)) if !text.contains('+') => Ok(Self { index, sub_index }),
            _ => Err(format!("found \"{text}\", expected INDEX or INDEX:SUB in hexadecimal, as 0x1018:1")),
        }
    }
}

impl fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}:{:02x}", self.index, self.sub_index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hexadecimal_with_and_without_prefix() {
        let parse = |text: &str| text.parse::<ObjectAddress>().map(|it| it.to_string());
        assert_eq!(parse("0x1018:1").unwrap(), "0x1018:01");
        assert_eq!(parse("6041").unwrap(), "0x6041:00");
        assert_eq!(parse("0x1A00:0x0a").unwrap(), "0x1a00:0a");
        for wrong in ["", ":", "0x", "0x10000", "1018:100", "status", "+60:1", "1018:1:1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
