//! Tables of a robot file, with the places of their values in the text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::devices;
use crate::error::Problem;
use crate::value;

/// Bytes of a file at most: a thousand times what large robots have.
const LARGEST: u64 = 16 << 20;

/// UTF-8 byte-order mark.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Text of the file at `path` without a byte-order mark, a regular one: others may have no end, or nothing to read for ever.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST + 1).read_to_string(&mut text)?;
    // Some editors begin a file with a byte-order mark.
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    if text.len() as u64 > LARGEST {
        return Err(io::Error::other(format!("it has more than {} MiB", LARGEST >> 20)));
    }
    Ok(text)
}

/// A file as tables.
#[derive(Debug)]
pub(crate) struct Source<'t> {
    text: &'t str,
    root: Spanned<DeValue<'t>>,
}

impl<'t> Source<'t> {
    /// Parses `text`.
    #[cfg(feature = "task-set")]
    pub(crate) fn parse(text: &'t str) -> Result<Self, Problem> {
        Self::of(text, tables(text)?, |_| Ok(()))
    }

    /// Parses `text`, a robot file, in which SubDevices have all their properties and controllers are a list.
    pub(crate) fn robot(text: &'t str) -> Result<Self, Problem> {
        Self::robot_of(text, tables(text)?)
    }

    /// The same of the tables of `text`.
    pub(crate) fn robot_of(text: &'t str, root: Spanned<DeTable<'t>>) -> Result<Self, Problem> {
        Self::of(text, root, |root| {
            one_is_a_list_of_one(root, "controller");
            devices::inherit(text, root)
        })
    }

    fn of(
        text: &'t str,
        root: Spanned<DeTable<'t>>,
        complete: impl FnOnce(&mut DeTable<'t>) -> Result<(), Problem>,
    ) -> Result<Self, Problem> {
        let span = root.span();
        let mut root = root.into_inner();
        complete(&mut root)?;
        Ok(Self { text, root: Spanned::new(span, DeValue::Table(root)) })
    }

    /// Reads the whole file as one `T`, which refuses the values that no `T` has.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        value::read(self.root.span(), self.root.get_ref())
            .map_err(|refused| Problem::refused(self.text, refused))
    }

    /// Place of the value of a key at the top.
    pub(crate) fn key(&self, key: &str) -> Place<'_> {
        Place { start: self.root.span().start, value: Some(self.root.get_ref()) }.key(key)
    }
}

/// Tables of `text`.
pub(crate) fn tables(text: &str) -> Result<Spanned<DeTable<'_>>, Problem> {
    DeTable::parse(text).map_err(|error| Problem::from_toml(text, &error))
}

/// Removes the key at `start`, or the key whose value, or a value of whose list, is there; `None` if nothing is, or only a table.
pub(crate) fn remove(table: &mut DeTable<'_>, start: usize) -> Option<String> {
    let mut here = table.iter().filter(|(key, value)| key.span().start == start || begins_at(value, start));
    let here = here.next().map(|(key, _)| key.get_ref().to_string());
    match here {
        Some(key) => table.remove(key.as_str()).map(|_| key),
        None => table.iter_mut().find_map(|(_, value)| remove_in(value.get_mut(), start)),
    }
}

fn remove_in(value: &mut DeValue<'_>, start: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => remove(table, start),
        DeValue::Array(items) => items.iter_mut().find_map(|item| remove_in(item.get_mut(), start)),
        _ => None,
    }
}

/// Removes the innermost table of a list with the key or value at `start`, and returns its name, empty without one.
pub(crate) fn remove_item(table: &mut DeTable<'_>, start: usize) -> Option<String> {
    table.iter_mut().find_map(|(_, value)| remove_item_in(value.get_mut(), start))
}

fn remove_item_in(value: &mut DeValue<'_>, start: usize) -> Option<String> {
    match value {
        DeValue::Table(table) => remove_item(table, start),
        DeValue::Array(items) => {
            if let Some(name) = items.iter_mut().find_map(|item| remove_item_in(item.get_mut(), start)) {
                return Some(name);
            }
            let has = |item: &Spanned<DeValue<'_>>| {
                item.get_ref().as_table().is_some_and(|table| remove(&mut table.clone(), start).is_some())
            };
            let place = items.iter().position(has)?;
            let name = items.get(place)?.get_ref().get("name").and_then(|name| name.get_ref().as_str());
            let name = name.unwrap_or_default().to_owned();
            let others = items.iter().enumerate().filter(|(other, _)| *other != place);
            let others: DeArray<'_> = others.map(|(_, item)| item.clone()).collect();
            *items = others;
            Some(name)
        }
        _ => None,
    }
}

/// Puts another value in the place of one that begins at `start`; false if none does.
pub(crate) fn replace<'t>(table: &mut DeTable<'t>, start: usize, with: &DeValue<'t>) -> bool {
    table.iter_mut().any(|(_, value)| replace_in(value, start, with))
}

fn replace_in<'t>(value: &mut Spanned<DeValue<'t>>, start: usize, with: &DeValue<'t>) -> bool {
    let here = value.span().start == start;
    match value.get_mut() {
        DeValue::Table(table) => replace(table, start, with),
        DeValue::Array(items) if !here => items.iter_mut().any(|item| replace_in(item, start, with)),
        found if here => {
            *found = with.clone();
            true
        }
        _ => false,
    }
}

/// Values that may stand where something else was found: words of what was expected that are near it, then numbers.
pub(crate) fn substitutes(found: &str, expected: &str) -> Vec<DeValue<'static>> {
    // No text makes the comparison slow.
    let found: String = found.split('"').nth(1).unwrap_or_default().chars().take(64).collect();
    let words = expected.split(|it: char| !(it.is_alphanumeric() || "_-.".contains(it)));
    let alike = |word: &str| {
        strsim::jaro_winkler(&found, word).max(strsim::normalized_damerau_levenshtein(&found, word))
    };
    let mut words: Vec<&str> =
        words.filter(|it| (1..64).contains(&it.len()) && alike(it) > ALIKE).collect();
    words.sort_by(|one, other| alike(other).total_cmp(&alike(one)));
    let named = words.into_iter().take(MOST_NAMED).map(|name| DeValue::String(name.to_owned().into()));
    let numbers = ["x = 1", "x = 1.0", "x = 0", "x = \"1ms\""].into_iter().filter_map(|text| {
        let mut table = DeTable::parse(text).ok()?.into_inner();
        table.remove("x").map(Spanned::into_inner)
    });
    named.chain(numbers).collect()
}

/// Likeness of a word that may have been meant.
const ALIKE: f64 = 0.6;

/// Words of a sentence that are tried.
const MOST_NAMED: usize = 3;

/// True if a value that is no table begins there, or one of its items.
fn begins_at(value: &Spanned<DeValue<'_>>, start: usize) -> bool {
    match value.get_ref() {
        DeValue::Table(_) => false,
        DeValue::Array(items) if items.iter().any(|item| item.get_ref().is_table()) => false,
        DeValue::Array(items) => {
            value.span().start == start || items.iter().any(|item| begins_at(item, start))
        }
        _ => value.span().start == start,
    }
}

/// Makes a single table the only one of a list.
fn one_is_a_list_of_one(root: &mut DeTable<'_>, key: &str) {
    if let Some(value) = root.get_mut(key).filter(|value| value.get_ref().is_table()) {
        let one = value.clone();
        *value.get_mut() = DeValue::Array([one].into_iter().collect());
    }
}

/// Place of a value in the text; of a value that is not there, the place of the table it would be in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'s> {
    start: usize,
    value: Option<&'s DeValue<'s>>,
}

impl<'s> Place<'s> {
    /// Value of `key` of a table.
    pub(crate) fn key(self, key: &str) -> Self {
        self.go_to(self.value.and_then(|value| value.get(key)))
    }

    /// Value of a list, from 0.
    pub(crate) fn item(self, index: usize) -> Self {
        self.go_to(self.value.and_then(|value| value.get(index)))
    }

    /// Name of `key` itself, which the writer of the file chose.
    pub(crate) fn name_of(self, key: &str) -> Self {
        let table = self.value.and_then(DeValue::as_table);
        let name = table.and_then(|table| table.get_key_value(key));
        Self { start: name.map_or(self.start, |(name, _)| name.span().start), value: None }
    }

    /// Value of the first of `keys` that is there.
    pub(crate) fn first_of(self, keys: &[&str]) -> Self {
        keys.iter().find(|key| self.has(key)).map_or(self, |key| self.key(key))
    }

    /// True if the table has `key`.
    pub(crate) fn has(self, key: &str) -> bool {
        self.value.is_some_and(|value| value.get(key).is_some())
    }

    fn go_to(self, value: Option<&'s Spanned<DeValue<'s>>>) -> Self {
        let start = value.map_or(self.start, |value| value.span().start);
        Self { start, value: value.map(Spanned::get_ref) }
    }
}

impl From<Place<'_>> for Range<usize> {
    fn from(place: Place<'_>) -> Self {
        place.start..place.start
    }
}
