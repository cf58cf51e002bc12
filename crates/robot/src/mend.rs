//! All problems of a file: after each one, the problems that show once it is fixed.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::error::{FileError, Problem};
use crate::model::{Overrides, RobotConfig};

/// Problems of a file that are reported at once: more are not read.
const MOST_PROBLEMS: usize = 20;

impl RobotConfig {
    /// All problems of the robot file `text`, in the order of detection; none for a file that
    /// [`RobotConfig::parse`] accepts.
    ///
    /// After the first, each problem is found once the values before it are replaced by possible
    /// ones, or left out. If neither helps it is the last one: more may show once these are fixed.
    #[must_use]
    pub fn problems(text: &str, file_name: &str) -> Vec<FileError> {
        let mut tables = match crate::tables(text) {
            Ok(tables) => tables,
            Err(problem) => return vec![FileError::at(text, file_name, problem)],
        };
        let mut problems: Vec<FileError> = Vec::new();
        let mut without: Vec<String> = Vec::new();
        let mut mended: Vec<usize> = Vec::new();
        let mut next = Self::problem(text, &tables);
        for _ in 0..MOST_PROBLEMS {
            let Some(problem) = next.take() else { break };
            let start = problem.span.start;
            let found = FileError::at(text, file_name, problem);
            if problems.contains(&found) {
                break;
            }
            // A reference to a table that was left out is right, and a substitute for another value
            // is not the user's.
            let told = !without.iter().any(|name| found.names(name)) && !mended.contains(&start);
            if let Some((behind, left_out)) = Self::mend(text, &mut tables, start, &found) {
                mended.push(start);
                next = behind;
                without.extend(left_out);
            }
            problems.extend(told.then_some(found));
        }
        problems
    }

    /// Takes the problem at `start` out of the tables: with another value there, without its key,
    /// or without the table of a list that needs the key. Returns the next problem, and the name of
    /// that table; `None` if nothing helps.
    fn mend(
        text: &str,
        tables: &mut Spanned<DeTable<'_>>,
        start: usize,
        found: &FileError,
    ) -> Option<(Option<Problem>, Option<String>)> {
        for mut value in substitutes(&found.found, &found.expected) {
            if !swap(tables.get_mut(), start, &mut value) {
                break;
            }
            let next = Self::problem(text, tables);
            if next.as_ref().is_none_or(|next| next.span.start != start) {
                return Some((next, None));
            }
            swap(tables.get_mut(), start, &mut value);
        }
        let item = item(tables.get_ref(), start);
        let key = remove(tables.get_mut(), start)?;
        let next = Self::problem(text, tables);
        if !next.as_ref().is_some_and(|next| next.lacks(&key)) {
            return Some((next, None));
        }
        let (place, name) = item?;
        remove_item(tables.get_mut(), place);
        Some((Self::problem(text, tables), Some(name)))
    }

    fn problem(text: &str, tables: &Spanned<DeTable<'_>>) -> Option<Problem> {
        Self::of(text, tables.clone(), Overrides::default()).err()
    }
}

/// Removes the key at `start`. Also removes the key if its value, or a value of its list, is at
/// `start`. `None` if nothing is there, or only a table.
fn remove(table: &mut DeTable<'_>, start: usize) -> Option<String> {
    let here = table.iter().find(|(key, value)| is_here(key, value, start));
    let here = here.map(|(key, _)| key.get_ref().to_string());
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

/// Place of the innermost table of a list with the key or value at `start`, and its name, empty
/// without one.
fn item(table: &DeTable<'_>, start: usize) -> Option<(usize, String)> {
    table.values().find_map(|value| item_in(value.get_ref(), start))
}

fn item_in(value: &DeValue<'_>, start: usize) -> Option<(usize, String)> {
    match value {
        DeValue::Table(table) => item(table, start),
        DeValue::Array(items) => items.iter().find_map(|value| {
            let table = value.get_ref().as_table()?;
            let this = || {
                let name = table.get("name").and_then(|name| name.get_ref().as_str());
                (value.span().start, name.unwrap_or_default().to_owned())
            };
            item(table, start).or_else(|| has(table, start).then(this))
        }),
        _ => None,
    }
}

/// True if the key or value at `start` is in the table, or in one of its tables.
fn has(table: &DeTable<'_>, start: usize) -> bool {
    table.iter().any(|(key, value)| {
        is_here(key, value, start) || value.get_ref().as_table().is_some_and(|table| has(table, start))
    })
}

fn is_here(key: &Spanned<DeString<'_>>, value: &Spanned<DeValue<'_>>, start: usize) -> bool {
    key.span().start == start || begins_at(value, start)
}

/// Removes the table of a list that begins at `place`.
fn remove_item(table: &mut DeTable<'_>, place: usize) {
    for (_, value) in table.iter_mut() {
        remove_item_in(value.get_mut(), place);
    }
}

fn remove_item_in(value: &mut DeValue<'_>, place: usize) {
    match value {
        DeValue::Table(table) => remove_item(table, place),
        DeValue::Array(items) => {
            if items.iter().any(|item| item.span().start == place) {
                *items = items.iter().filter(|item| item.span().start != place).cloned().collect();
            }
            items.iter_mut().for_each(|item| remove_item_in(item.get_mut(), place));
        }
        _ => {}
    }
}

/// Swaps the value that begins at `start` with another; false if none does.
fn swap<'t>(table: &mut DeTable<'t>, start: usize, with: &mut DeValue<'t>) -> bool {
    table.iter_mut().any(|(_, value)| swap_in(value, start, with))
}

fn swap_in<'t>(value: &mut Spanned<DeValue<'t>>, start: usize, with: &mut DeValue<'t>) -> bool {
    let here = value.span().start == start;
    match value.get_mut() {
        DeValue::Table(table) => swap(table, start, with),
        DeValue::Array(items) if !here => items.iter_mut().any(|item| swap_in(item, start, with)),
        found if here => {
            std::mem::swap(found, with);
            true
        }
        _ => false,
    }
}

/// Values to try in place of the wrong one: similar words of the expectation, then numbers.
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

/// Similar words that are tried, at most.
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
