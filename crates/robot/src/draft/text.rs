//! TOML in the style of a human author: rows with a comment after them, numbers with underscores.

use crate::field::is_unseen;

/// Column of the comments.
const COLUMN: usize = 36;

/// Letters of a line of comments.
const WIDTH: usize = 116;

/// Longest text of others that is shown.
const LONGEST: usize = 48;

/// A row, and a comment after it unless that is empty.
pub(super) fn row(code: &str, comment: &str) -> String {
    match comment {
        "" => format!("{code}\n"),
        _ => format!("{:<COLUMN$}# {comment}\n", format!("{code}  ")),
    }
}

/// Parts of a comment behind each other, in lines that are not too long.
pub(super) fn wrapped(begin: &str, parts: &[String]) -> String {
    let mut lines = vec![format!("# {begin}")];
    for (place, part) in parts.iter().enumerate() {
        let comma = if place + 1 < parts.len() { "," } else { "" };
        let line = lines.last_mut().filter(|line| line.chars().count() + part.chars().count() < WIDTH);
        match line {
            Some(line) => *line += &format!(" {part}{comma}"),
            None => lines.push(format!("#     {part}{comma}")),
        }
    }
    lines.join("\n") + "\n"
}

/// An external text in one line: nothing in it ends a comment or turns the direction of letters.
pub(super) fn one_line(text: &str) -> String {
    let letters: String = text.chars().map(|letter| if is_unseen(letter) { ' ' } else { letter }).collect();
    letters.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A text of a SubDevice, in one line of limited length.
pub(super) fn shown(text: &str) -> String {
    one_line(text).chars().take(LONGEST).collect::<String>().trim_end().to_owned()
}

/// A basic string of TOML, in its quotes.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A number with a decimal point; whole numbers from a thousand on have underscores and no point.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 && (1e3..1e15).contains(&value.abs()) {
        let digits = format!("{:.0}", value.abs());
        let mut grouped = String::new();
        for (place, digit) in digits.char_indices() {
            if place > 0 && (digits.len() - place) % 3 == 0 {
                grouped.push('_');
            }
            grouped.push(digit);
        }
        return if value < 0.0 { format!("-{grouped}") } else { grouped };
    }
    format!("{value:?}")
}

/// `value` with three significant digits, towards zero.
pub(super) fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // A division by a whole power of ten: a product with its inverse has other last digits.
    let digits = 2 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits.abs());
    match digits {
        0.. => (value * scale).trunc() / scale,
        _ => (value / scale).trunc() * scale,
    }
}

/// A number of 32 bits as in identities.
pub(super) fn long(value: u32) -> String {
    format!("0x{:04X}_{:04X}", value >> 16, value & 0xFFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_follow_toml() {
        for (value, text) in [
            (1_048_576.0, "1_048_576"),
            (999.0, "999.0"),
            (-12_345.0, "-12_345"),
            (0.5, "0.5"),
            (1e20, "1e20"),
            (1.25e-7, "1.25e-7"),
        ] {
            assert_eq!(number(value), text);
            let table: toml::Table = format!("a = {text}").parse().unwrap();
            let read = table["a"].as_float().or(table["a"].as_integer().map(|it| it as f64));
            assert_eq!(read, Some(value));
        }
        assert_eq!(
            (rounded(0.012_399), rounded(7.2), rounded(12_345.0), rounded(0.0)),
            (0.0123, 7.2, 12_300.0, 0.0)
        );
        assert_eq!(quoted("a \"b\"\n\u{202E}c\\"), "\"a \\\"b\\\" c\\\\\"");
        assert_eq!(row("a = 1", ""), "a = 1\n");
        assert!(row(&"a".repeat(40), "b").ends_with("a  # b\n"));
        let lines = wrapped("PDO:", &vec!["0x6000:01 Input (1)".to_owned(); 9]);
        assert!(
            lines.lines().count() == 2
                && lines.lines().all(|line| line.len() < 120 && line.starts_with('#')),
            "{lines}"
        );
        assert_eq!(long(0x044C_2C52), "0x044C_2C52");
    }
}
