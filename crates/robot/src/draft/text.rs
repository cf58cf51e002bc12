//! TOML in the style of a human author: rows with a comment after them, numbers with underscores.
//!
//! Names of types and of SubDevices: short, of letters that need no quotes, each of them once.

use std::collections::HashSet;

use super::found::Found;
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

/// Longest name of a type.
const LONGEST_NAME: usize = 24;

/// Name of a type of SubDevice: the first word of its order number, or of its name. If the names
/// differ by a number, their common part. `None` if they have nothing in common.
pub(super) fn of_type(all: &[&Found]) -> Option<String> {
    let texts: Vec<String> = all.iter().map(|it| first_word(it)).collect();
    let first = texts.first().cloned().unwrap_or_default();
    let differ = texts.iter().any(|it| *it != first);
    let mut name = first;
    if differ {
        name = texts.iter().fold(name, |name, other| {
            let same = name.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
            name.chars().take(same).collect()
        });
        let number = |text: &String| text[name.len()..].chars().all(|it| it.is_ascii_digit() || it == '-');
        if !texts.iter().all(number) {
            return None;
        }
        name = name.trim_end_matches(|it: char| it.is_ascii_digit()).to_owned();
    }
    let name: String = name.chars().take(LONGEST_NAME).collect();
    Some(name.trim_matches('-').to_owned()).filter(|it| !it.is_empty())
}

/// Names of several that are called differently, if no two are called alike.
pub(super) fn of_each(all: &[&Found]) -> Option<Vec<String>> {
    let names: Vec<String> =
        all.iter().map(|it| first_word(it).chars().take(LONGEST_NAME).collect()).collect();
    let distinct: HashSet<&String> = names.iter().filter(|it| !it.is_empty()).collect();
    (distinct.len() == names.len() && names.len() > 1).then_some(names)
}

fn first_word(found: &Found) -> String {
    let word = |text: &str| {
        let words = text.split(|it: char| it.is_whitespace() || it.is_control() || it == ',');
        let plain = words.map(|word| {
            let letters = word
                .chars()
                .map(|it| if it.is_ascii_alphanumeric() { it.to_ascii_lowercase() } else { '-' });
            letters.collect::<String>().trim_matches('-').to_owned()
        });
        plain.into_iter().find(|word| word.len() >= 2)
    };
    word(&found.order).or_else(|| word(&found.name)).unwrap_or_default()
}

/// Names that are taken.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// A name like `wanted` for a type with `count` SubDevices, so that their names are free, too:
    /// its own, or with a number.
    pub(super) fn give(&mut self, wanted: &str, count: usize) -> String {
        // Names of types have no underscore, so a numbered one never equals another type's name.
        let candidates = (1_u64..).map(|number| match number {
            1 => wanted.to_owned(),
            number => format!("{wanted}_{number}"),
        });
        let members =
            |name: &String| (1..=count).map(|number| member(name, count, number)).collect::<Vec<_>>();
        let mut free = candidates.filter(|name| {
            !self.taken.contains(name) && members(name).iter().all(|it| !self.taken.contains(it))
        });
        let name = free.next().unwrap_or_default();
        self.taken.extend(members(&name));
        self.taken.insert(name.clone());
        name
    }
}

/// Name of a SubDevice: the name of its type, with its number if there are several.
pub(super) fn member(name: &str, count: usize, number: usize) -> String {
    if count == 1 { name.to_owned() } else { format!("{name}-{number}") }
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

    fn found(order: &str, name: &str) -> Found {
        Found { order: order.to_owned(), name: name.to_owned(), ..Found::default() }
    }

    #[test]
    fn a_type_is_called_as_its_maker_calls_it() {
        let of = |all: &[Found]| of_type(&all.iter().collect::<Vec<_>>());
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(of(&[found("EL7211-0010", "EL7211 servo")]), named("el7211-0010"));
        assert_eq!(of(&[found("", "AKD EtherCAT Drive (CoE)")]), named("akd"));
        assert_eq!(of(&[found("drive-1", "drive-1"), found("drive-12", "drive-12")]), named("drive"));
        assert_eq!(of(&[found("", "\u{0}\n"), found("", "")]), None);
        assert_eq!(of(&[found("Ärger", "")]), named("rger"));
        let limbs = [found("arm", ""), found("axe", "")];
        assert_eq!(of(&limbs), None);
        assert_eq!(of_each(&[&limbs[0], &limbs[1]]), Some(vec!["arm".to_owned(), "axe".to_owned()]));
        assert_eq!(of_each(&[&limbs[0], &limbs[0]]), None);
    }

    #[test]
    fn every_name_is_given_once() {
        let mut names = Names::default();
        assert_eq!(names.give("el2004", 2), "el2004");
        assert_eq!(names.give("el2004-2", 1), "el2004-2_2");
        assert_eq!(names.give("el2004", 2), "el2004_2");
        assert_eq!((names.give("akd", 1), names.give("akd", 2)), ("akd".to_owned(), "akd_2".to_owned()));
    }
}
