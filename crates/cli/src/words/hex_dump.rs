//! Bytes as people read them: offset, hexadecimal, printable characters.

use std::fmt::{self, Write as _};

/// Displays bytes, sixteen a line.
pub(crate) struct HexDump<'a>(pub(crate) &'a [u8]);

impl fmt::Display for HexDump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (line, bytes) in self.0.chunks(16).enumerate() {
            if line > 0 {
                f.write_char('\n')?;
            }
            write!(f, "{:04x} ", line * 16)?;
            for column in 0..16 {
                match bytes.get(column) {
                    Some(byte) => write!(f, " {byte:02x}")?,
                    None => f.write_str("   ")?,
                }
            }
            f.write_str("  ")?;
            for &byte in bytes {
                f.write_char(if byte == b' ' || byte.is_ascii_graphic() { byte as char } else { '.' })?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_last_line_keeps_its_columns() {
        let dump = HexDump(b"Onbeat servo 1.0\x00\xff").to_string();
        let expected = "0000  4f 6e 62 65 61 74 20 73 65 72 76 6f 20 31 2e 30  Onbeat servo 1.0\n\
                        0010  00 ff                                            ..";
        assert_eq!(dump, expected);
        assert_eq!(HexDump(&[]).to_string(), "");
    }
}
