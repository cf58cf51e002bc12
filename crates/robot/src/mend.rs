//! All problems of a file: behind each, those that show once it is mended.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::error::{FileError, Problem};
use crate::model::{Overrides, RobotConfig};

/// Problems of a file that are told at once: more are not read.
const MOST_PROBLEMS: usize = 20;

impl RobotConfig {
    /// All problems of the robot file `text`, in the order in which they are met; of one that [`RobotConfig::parse`] reads none.
    ///
    /// Behind the first, each is what is found once the values before it are replaced by ones that may stand there, or left out. Where
    /// neither helps it is the last one: more may show once these are mended.
    #[must_use]
    pub fn problems(text: &str, file_name: &str) -> Vec<FileError> {
        let mut tables = match crate::tables(text) {
            Ok(tables) => tables,
            Err(problem) => return vec![FileError::at(text, file_name, problem)],
        };
        let mut problems: Vec<FileError> = Vec::new();
        let mut without: Vec<String> = Vec::new();
        for _ in 0..MOST_PROBLEMS {
            let Some(problem) = Self::problem(text, &tables) else { break };
            let start = problem.span.start;
            let found = FileError::at(text, file_name, problem);
            // What names a table that was left out is right.
            let told = !without.iter().any(|name| found.names(name));
            if problems.contains(&found) {
                break;
            }
            match Self::mended(text, &tables, start, &found) {
                Some((mended, left_out)) => {
                    tables = mended;
                    without.extend(left_out);
                    problems.extend(told.then_some(found));
                }
                None => {
                    problems.extend(told.then_some(found));
                    break;
                }
            }
        }
        problems
    }

    /// The tables without the problem at `start`: with another value there, without its key, or without the table of a list that cannot
    /// be without the key; and the name of that table.
    fn mended<'t>(
        text: &str,
        tables: &Spanned<DeTable<'t>>,
        start: usize,
        found: &FileError,
    ) -> Option<(Spanned<DeTable<'t>>, Option<String>)> {
        let replaced = substitutes(&found.found, &found.expected).into_iter().find_map(|value| {
            let mut tables = tables.clone();
            let replaced = replace(tables.get_mut(), start, &value);
            let helps = || Self::problem(text, &tables).is_none_or(|next| next.span.start != start);
            (replaced && helps()).then_some((tables, None))
        });
        replaced.or_else(|| {
            let mut shorter = tables.clone();
            let key = remove(shorter.get_mut(), start)?;
            let next = Self::problem(text, &shorter).map(|it| FileError::at(text, "", it));
            if !next.is_some_and(|next| next.lacks(&key)) {
                return Some((shorter, None));
            }
            let mut shorter = tables.clone();
            let name = remove_item(shorter.get_mut(), start)?;
            Some((shorter, Some(name)))
        })
    }

    fn problem(text: &str, tables: &Spanned<DeTable<'_>>) -> Option<Problem> {
        Self::of(text, tables.clone(), Overrides::default()).err()
    }
}

/// Removes the key at `start`, or the key whose value, or a value of whose list, is there; `None` if nothing is, or only a table.
fn remove(table: &mut DeTable<'_>, start: usize) -> Option<String> {
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
fn remove_item(table: &mut DeTable<'_>, start: usize) -> Option<String> {
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
fn replace<'t>(table: &mut DeTable<'t>, start: usize, with: &DeValue<'t>) -> bool {
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
fn substitutes(found: &str, expected: &str) -> Vec<DeValue<'static>> {
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
