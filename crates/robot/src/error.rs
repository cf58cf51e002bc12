//! Errors of a robot file, with their place.

use std::fmt::{self, Display};
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::de;
use thiserror::Error;
use types::near::nearest;

/// Error of a robot file: one sentence with the place, the content found, the content expected and
/// the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct FileError {
    /// File, as named by the caller.
    pub file: String,
    /// Line from 1, and column in characters from 1; `None` if the file could not be read at all.
    pub place: Option<(usize, usize)>,
    /// Content found.
    pub found: String,
    /// Content expected.
    pub expected: String,
    /// Remedy.
    pub remedy: String,
}

impl Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some((line, column)) = self.place {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}, expected {}: {}", self.found, self.expected, self.remedy)
    }
}

impl FileError {
    pub(crate) fn at(text: &str, file: &str, problem: Problem) -> Self {
        let Problem { span, found, expected, remedy } = problem;
        Self {
            file: file.to_owned(),
            place: Some(line_and_column(text, span.start)),
            found,
            expected,
            remedy,
        }
    }

    /// True if it is about something of this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        !name.is_empty() && self.found.contains(&format!("\"{name}\""))
    }

    pub(crate) fn unreadable(path: &Path, expected: &str, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::PermissionDenied => "check the file's permissions",
            io::ErrorKind::InvalidData => "save it as UTF-8",
            _ => "check the path and the file",
        };
        Self {
            file: path.display().to_string(),
            place: None,
            found: format!("cannot be read ({error})"),
            expected: expected.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

/// A [`FileError`] with a byte range in place of the line.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) span: Range<usize>,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) remedy: String,
}

impl Problem {
    pub(crate) fn new(
        place: impl Into<Range<usize>>,
        found: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { span: place.into(), found: found.into(), expected: expected.into(), remedy: remedy.into() }
    }

    /// True if it is that this key is missing.
    pub(crate) fn lacks(&self, key: &str) -> bool {
        self.found.contains("missing") && self.found.contains(&format!("\"{key}\""))
    }

    /// As an error of serde, which [`Problem::refused`] reads.
    pub(crate) fn into_error<E: de::Error>(self) -> E {
        let Self { span, found, expected, remedy } = self;
        refused(found, expected, format_args!("{remedy}{SEPARATOR}{}", span.start))
    }

    /// Error of the TOML parser, in the style of the other problems.
    pub(crate) fn from_toml(text: &str, error: &toml::de::Error) -> Self {
        let message = error.message().lines().next().unwrap_or_default();
        wrong_value(error.span().unwrap_or(0..0), text, message)
    }

    /// Refusal of a value, in the style of the other problems.
    pub(crate) fn refused(text: &str, refused: Refused) -> Self {
        let Refused { message, span, key } = refused;
        let span = span.unwrap_or(0..0);
        if let ["", found, expected, remedy, place @ ..] = &*message.split(SEPARATOR).collect::<Vec<_>>() {
            let key = key.unwrap_or_default();
            let [found, expected, remedy] = [found, expected, remedy].map(|words| words.replace(KEY, &key));
            let place = place.first().and_then(|place| place.parse().ok());
            return Self::new(place.map_or(span, |start| start..start), found, expected, remedy);
        }
        let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match words.split_first() {
            Some((key, known)) if message.starts_with("unknown field") => {
                unknown_word(span, "key", key, known, nearest(key, known.iter().copied()))
            }
            Some((value, known)) if message.starts_with("unknown variant") => {
                unknown_word(span, "value", value, known, nearest(value, known.iter().copied()))
            }
            Some((key, _)) if message.starts_with("missing field") => {
                let found = format!("the key \"{key}\" is missing from this table");
                Self::new(span, found, format!("{key} = ..."), "add it")
            }
            _ => wrong_value(span, text, &message),
        }
    }
}

/// Marker before the parts of a refused value's message: found, expected, the remedy and perhaps
/// the place.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// Placeholder for the key of a value in messages about it.
pub(crate) const KEY: &str = "{key}";

/// Error of one value: what was found, what was expected, the remedy.
pub(crate) fn refused<E: de::Error>(
    found: impl Display,
    expected: impl Display,
    remedy: impl Display,
) -> E {
    E::custom(format_args!("{SEPARATOR}{found}{SEPARATOR}{expected}{SEPARATOR}{remedy}"))
}

/// Refusal of a value.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) message: String,
    /// Bytes of the text that it is about.
    pub(crate) span: Option<Range<usize>>,
    /// Innermost key that it is about.
    pub(crate) key: Option<String>,
}

impl Refused {
    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }

    pub(crate) fn under(mut self, key: &str) -> Self {
        self.key.get_or_insert_with(|| key.to_owned());
        self
    }
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

impl de::Error for Refused {
    fn custom<T: Display>(message: T) -> Self {
        Self { message: message.to_string(), span: None, key: None }
    }
}

/// Problem of a name that is not among `known`, with the nearest of them, or the advice to correct
/// `key`.
pub(crate) fn unknown_name<'a>(
    place: impl Into<Range<usize>>,
    found: String,
    expected: impl Into<String>,
    wanted: &str,
    known: impl IntoIterator<Item = &'a str>,
    key: &str,
) -> Problem {
    let remedy = nearest(wanted, known)
        .map_or_else(|| format!("correct {key}"), |nearest| format!("did you mean \"{nearest}\"?"));
    Problem::new(place, found, expected, remedy)
}

pub(crate) type Checked<T> = Result<T, Problem>;

/// Problem of a `word` that is not in `known`, with the nearest known word.
pub(crate) fn unknown_word(
    span: Range<usize>,
    what: &str,
    word: &str,
    known: &[&str],
    nearest: Option<&str>,
) -> Problem {
    let remedy = match nearest {
        _ if word == "memory_lock" => {
            "a cycle's memory lock is now the letter M of its profile, as in profile = \"PM\"".to_owned()
        }
        Some(nearest) => format!("did you mean \"{nearest}\"?"),
        None => format!("correct or remove the {what}"),
    };
    let expected = match known {
        [] => "nothing here".to_owned(),
        [only] => format!("\"{only}\""),
        several => format!("one of {}", several.join(", ")),
    };
    Problem::new(span, format!("unknown {what} \"{word}\""), expected, remedy)
}

/// Parses `invalid type: string "x", expected u32`, `invalid value: ..., expected ...`, and the
/// messages of the TOML parser itself, which may lack the second part.
fn wrong_value(span: Range<usize>, text: &str, message: &str) -> Problem {
    let of_value = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .or_else(|| message.strip_prefix("invalid length "));
    let (found, expected) = of_value.unwrap_or(message).rsplit_once(", expected ").unwrap_or((message, ""));
    let expected = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "i64" | "u64" | "usize" => "a whole number",
        "f64" => "a number",
        "a string" => "text in quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "" => "valid TOML",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    let there = text.get(span.clone()).unwrap_or_default();
    if found.starts_with("floating point") && expected.starts_with("a whole number") {
        let expected = format!("{expected}{}", types::object::without_point(there));
        return Problem::new(span, there.to_owned(), expected, "correct the file here");
    }
    let found = match there {
        // The span of a key without its value, for one, is empty: the message then gives more.
        there if of_value.is_none() && !there.trim().is_empty() && !there.contains('\n') => {
            format!("{found} at `{}`", there.trim())
        }
        _ => found.to_owned(),
    };
    Problem::new(span, found, expected, "correct the file here")
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_start_at_one() {
        let text = "a\nµµ=x";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('x').unwrap()), (2, 4));
        assert_eq!(line_and_column(text, 999), (2, 5));
    }
}
