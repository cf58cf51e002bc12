//! Words of a line, taken from the left, and what is wrong with one.

use std::time::Duration;

use ethercat::register::dl::PORTS;
use thiserror::Error;
use types::duration;
use types::near::{Near, nearest};

use super::Port;
use super::share::Share;
use super::targets::{Target, Targets};

/// Error of a line: place, found text, expected text, and remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("column {column}: {found}, expected {expected}: {remedy}")]
#[non_exhaustive]
pub struct FaultError {
    /// Column in characters from 1.
    pub column: usize,
    /// Content found.
    pub found: String,
    /// Content expected.
    pub expected: String,
    /// Remedy.
    pub remedy: String,
}

/// One word and its column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    column: usize,
}

/// Words of a line, taken from the left.
pub(super) struct Words<'t> {
    pub(super) words: Vec<Word<'t>>,
    pub(super) next: usize,
    /// Column behind the last.
    behind: usize,
    pub(super) targets: &'t Targets,
}

pub(super) type Found<T> = Result<T, FaultError>;

impl<'t> Words<'t> {
    pub(super) fn of(line: &'t str, targets: &'t Targets) -> Self {
        let (mut words, mut behind) = (Vec::new(), 1);
        let mut rest = line.trim_start();
        while !rest.is_empty() {
            let (text, further) = rest.split_at(length(rest));
            let column = line[..line.len() - rest.len()].chars().count() + 1;
            behind = column + text.chars().count();
            words.push(Word { text: unquoted(text), column });
            rest = further.trim_start();
        }
        Self { words, next: 0, behind, targets }
    }

    pub(super) fn end(&self) -> Found<()> {
        let more = self.words.get(self.next);
        more.map_or(Ok(()), |word| Err(word.is_not("the end of the line", "leave it out")))
    }

    /// True if there is a further word of the fault.
    pub(super) fn goes_on(&self) -> bool {
        self.words.get(self.next).is_some_and(|word| word.text != FOR)
    }

    pub(super) fn take(&mut self, expected: &str) -> Found<Word<'t>> {
        let Some(word) = self.words.get(self.next) else {
            let (column, found) = (self.behind, "the line ends".to_owned());
            return Err(FaultError {
                column,
                found,
                expected: expected.to_owned(),
                remedy: "add it".to_owned(),
            });
        };
        self.next += 1;
        Ok(*word)
    }

    /// One of these words, in capitals or not.
    pub(super) fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Found<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let expected = match &names[..] {
            [only] => (*only).to_owned(),
            [others @ .., last] => format!("{} or {last}", others.join(", ")),
            [] => String::new(),
        };
        let word = self.take(&expected)?;
        let found = choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.text));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let near = nearest(word.text, names.iter().copied());
            word.is_not(
                &expected,
                &near.map_or("correct it".into(), |near| format!("did you mean \"{near}\"?")),
            )
        })
    }

    pub(super) fn sub_device(&mut self) -> Found<usize> {
        let word = self.take(&self.some_sub_device())?;
        self.position(word, word.text)
    }

    pub(super) fn one_with(&mut self, expected: &str, has: impl Fn(&Target) -> bool) -> Found<usize> {
        let word = self.take(expected)?;
        let position = self.position(word, word.text)?;
        let found = self.targets.get(position).is_some_and(has);
        if found { Ok(position) } else { Err(word.is_not(expected, "name another")) }
    }

    fn some_sub_device(&self) -> String {
        format!("a SubDevice: a name, or a position from 0 to {}", self.targets.count().saturating_sub(1))
    }

    pub(super) fn position(&self, word: Word<'t>, name: &str) -> Found<usize> {
        self.targets.find(unquoted(name)).ok_or_else(|| {
            word.is_not(
                &self.some_sub_device(),
                &Near::to(unquoted(name), self.targets.names()).to_string(),
            )
        })
    }

    pub(super) fn servo_drive(&mut self) -> Found<usize> {
        let word = self.take("a servo drive")?;
        self.drive_named(word, word.text).map(|(position, _)| position)
    }

    /// Position of a drive, and its number of axes.
    fn drive_named(&self, word: Word<'t>, name: &str) -> Found<(usize, usize)> {
        let position = self.position(word, name)?;
        match self.targets.get(position).map_or(0, |target| target.axes) {
            0 => Err(word.is_not("a servo drive", "name another")),
            axes => Ok((position, axes)),
        }
    }

    /// A servo drive and, behind a colon, its axis from 1; the first one goes without. The axis is
    /// counted from 0 here.
    pub(super) fn servo_axis(&mut self) -> Found<(usize, usize)> {
        let word = self.take("a servo drive")?;
        let Some((name, axis)) =
            word.text.rsplit_once(':').filter(|_| self.targets.find(word.text).is_none())
        else {
            return self.drive_named(word, word.text).map(|(position, _)| (position, 0));
        };
        let (position, axes) = self.drive_named(word, name)?;
        match axis.parse::<usize>() {
            Ok(axis) if (1..=axes).contains(&axis) => Ok((position, axis - 1)),
            _ => Err(word.is_not(&format!("an axis of that drive, 1 to {axes}"), "correct the axis")),
        }
    }

    pub(super) fn port(&mut self) -> Found<Port> {
        let word = self.take(SUB_DEVICE_AND_PORT)?;
        let Some((name, port)) = word.text.rsplit_once(':') else {
            return Err(word.is_not(SUB_DEVICE_AND_PORT, "add :PORT"));
        };
        let position = self.position(word, name)?;
        let cables = self.targets.get(position).map_or([false; PORTS], |target| target.cables);
        let port = port.parse::<usize>().ok().filter(|&port| port < PORTS && cables[port]);
        let there = || {
            let ports = (0..PORTS).filter(|&port| cables[port]).map(|port| port.to_string());
            format!("a port with a cable, which are {}", ports.collect::<Vec<_>>().join(", "))
        };
        port.map(|port| Port { position, port }).ok_or_else(|| word.is_not(&there(), "correct the port"))
    }

    pub(super) fn time(&mut self, expected: &str) -> Found<Duration> {
        let expected = format!("{expected}, as 500us or 1.5s");
        let word = self.take(&expected)?;
        duration::parse(word.text).map_err(|_| word.is_not(&expected, "correct it"))
    }

    pub(super) fn share(&mut self) -> Found<Share> {
        let word = self.take(SHARE)?;
        Share::parse(word.text).ok_or_else(|| word.is_not(SHARE, "correct it"))
    }

    pub(super) fn number(&mut self, what: &str, lowest: u64, highest: u64) -> Found<u64> {
        let expected = format!("{what}, {lowest} to {highest} or as 0x{highest:x}");
        let word = self.take(&expected)?;
        let value = number(word.text).filter(|value| (lowest..=highest).contains(value));
        value.ok_or_else(|| word.is_not(&expected, "correct it"))
    }
}

impl Word<'_> {
    pub(super) fn is_not(self, expected: &str, remedy: &str) -> FaultError {
        let found: String = self.text.chars().take(LONGEST_SHOWN).collect();
        let more = if found.len() < self.text.len() { "..." } else { "" };
        FaultError {
            column: self.column,
            found: format!("found {found:?}{more}"),
            expected: expected.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

/// Length of the first word, which may contain spaces between the quotes it begins with.
fn length(line: &str) -> usize {
    let quoted = line.strip_prefix(QUOTE).and_then(|inner| inner.find(QUOTE)).map_or(0, |end| end + 2);
    line[quoted..].find(char::is_whitespace).map_or(line.len(), |end| quoted + end)
}

/// Without the quotes around it.
fn unquoted(text: &str) -> &str {
    let inner = text.strip_prefix(QUOTE).and_then(|text| text.strip_suffix(QUOTE));
    inner.filter(|inner| !inner.contains(QUOTE)).unwrap_or(text)
}

/// Reads a whole number, decimal or hexadecimal.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        None if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

/// Around a name with spaces.
pub(super) const QUOTE: char = '"';

/// Before the time that a fault lasts.
pub(super) const FOR: &str = "for";

/// Characters of a wrong word that are shown.
const LONGEST_SHOWN: usize = 40;

const SHARE: &str = "a share of at most 100% to four decimals, as 2.5%";
const SUB_DEVICE_AND_PORT: &str = "a SubDevice and its port, as 2:1";
