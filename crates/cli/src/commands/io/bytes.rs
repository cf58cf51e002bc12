//! Arrays of bytes as a text or as hexadecimal digits.

use ipc::description::{Description, SignalDescription};
use ipc::state::{Signal, ValueKind};
use serde_json::{Value, json};
use types::ValueType;

use crate::failure::Failure;
use crate::words::signals;

/// Form of an array of bytes (elements of type uint8, without a scale).
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// UTF-8; what is behind the text is zero
    Text,
    /// Two hexadecimal digits a byte
    Hex,
}

/// Places of the elements of the array of bytes `name`.
pub(super) fn places(description: &Description, name: &str) -> Result<Vec<usize>, Failure> {
    let places = super::places(description, name)?;
    let is_byte =
        |it: &SignalDescription| it.value_type == ValueType::Unsigned(8) && it.kind == ValueKind::Unsigned;
    match places.iter().map(|&place| &description.signals[place]).find(|it| !is_byte(it)) {
        None => Ok(places),
        Some(it) => Err(Failure::new(format!(
            "signal \"{}\" is of type {}, expected bytes (uint8, without a scale) for --as",
            it.name, it.value_type
        ))),
    }
}

impl Form {
    /// Bytes of `text`, as many as the array has.
    pub(super) fn parse(self, name: &str, text: &str, count: usize) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Text if text.len() <= count => {
                let zeros = std::iter::repeat_n(0, count - text.len());
                Ok(text.bytes().chain(zeros).collect())
            }
            Self::Text => Err(Failure::new(format!(
                "\"{text}\" for the signal \"{name}\" has {} bytes, expected {count} at most",
                text.len()
            ))),
            Self::Hex => hex(text).filter(|bytes| bytes.len() == count).ok_or_else(|| {
                Failure::new(format!(
                    "\"{text}\" for the signal \"{name}\", expected {} hexadecimal digits, two a byte",
                    2 * count
                ))
            }),
        }
    }

    /// Bytes in this form: a text up to its first zero, with what cannot be shown escaped.
    fn show(self, bytes: &[u8]) -> String {
        match self {
            Self::Text => {
                let chunks = text(bytes).utf8_chunks().map(|chunk| {
                    let valid = chunk.valid().escape_debug().to_string();
                    valid + &chunk.invalid().escape_ascii().to_string()
                });
                chunks.collect()
            }
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The array of these signals, and whether it is an old or a forced one.
    pub(super) fn words(self, all: &[Signal]) -> String {
        let (is_fresh, is_forced) = marks(all);
        let shown = match self {
            Self::Text => format!("\"{}\"", self.show(&bytes(all))),
            Self::Hex => self.show(&bytes(all)),
        };
        shown + &signals::marks(is_fresh, is_forced)
    }

    /// The same for programs.
    pub(super) fn object(self, name: &str, all: &[Signal]) -> Value {
        let (is_fresh, is_forced) = marks(all);
        let value = match self {
            Self::Text => String::from_utf8_lossy(text(&bytes(all))).into_owned(),
            Self::Hex => self.show(&bytes(all)),
        };
        json!({ "name": name, "bytes": all.len(), "value": value, "fresh": is_fresh, "forced": is_forced })
    }
}

/// True if all are fresh; true if one is forced.
fn marks(all: &[Signal]) -> (bool, bool) {
    (all.iter().all(|signal| signal.fresh), all.iter().any(|signal| signal.forced))
}

/// The bytes up to the first zero.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

fn bytes(all: &[Signal]) -> Vec<u8> {
    all.iter().map(|signal| signal.word as u8).collect()
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let digits: Vec<u8> =
        text.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(digit).collect::<Option<_>>()?;
    (digits.len() % 2 == 0).then(|| digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_filled_with_zeros_and_read_up_to_the_first() {
        assert_eq!(Form::Text.parse("it", "AB", 4).unwrap(), [65, 66, 0, 0]);
        let sentence = Form::Text.parse("it", "\u{20ac}uro", 5).unwrap_err().to_string();
        assert_eq!(sentence, "\"\u{20ac}uro\" for the signal \"it\" has 6 bytes, expected 5 at most");
        assert_eq!(Form::Text.show(&[65, 66, 0, 67]), "AB");
        assert_eq!(Form::Text.show(b"a\"\n\xff\x31"), "a\\\"\\n\\xff1");
        assert_eq!(Form::Text.show(&[0, 65]), "");
    }

    #[test]
    fn hexadecimal_digits_are_as_many_as_the_array_has() {
        assert_eq!(Form::Hex.parse("it", "00 fF7a", 3).unwrap(), [0, 255, 0x7a]);
        assert_eq!(Form::Hex.show(&[0, 255, 0x7a]), "00ff7a");
        for wrong in ["00ff", "00ff7", "00ff7a01", "00fg7a", "0x00ff"] {
            let sentence = Form::Hex.parse("it", wrong, 3).unwrap_err().to_string();
            let expected = "for the signal \"it\", expected 6 hexadecimal digits, two a byte";
            assert_eq!(sentence, format!("\"{wrong}\" {expected}"));
        }
    }

    #[test]
    fn an_array_is_old_where_one_byte_is_and_forced_where_one_is() {
        let signal = Signal { word: 0x41, fresh: true, forced: false };
        assert_eq!(Form::Text.words(&[signal; 2]), "\"AA\"");
        let old = Signal { fresh: false, ..signal };
        assert_eq!(Form::Hex.words(&[signal, old]), "4141 (old)");
        let forced = Signal { forced: true, ..signal };
        assert_eq!(Form::Text.words(&[signal, forced]), "\"AA\" (forced)");
        let object = Form::Text.object("it", &[signal, old]);
        assert_eq!(
            (&object["value"], &object["fresh"], &object["bytes"]),
            (&"AA".into(), &false.into(), &2.into())
        );
    }
}
