//! Expansion of a repeated entry: `count`, `first`, and `{}` in names.

use ethercat::main_device::MAXIMUM_SUB_DEVICES;
use toml::Spanned;

use super::{Checked, number, readable_name};
use crate::error::Problem;
use crate::file::Repeated;

/// Placeholder of the number in a name.
const PLACE: &str = "{}";

/// Largest number of SubDevices on a bus: the address range of the MainDevice.
pub(super) const MOST_SUB_DEVICES: i64 = MAXIMUM_SUB_DEVICES as i64;

/// Largest number in a name.
const LARGEST_FIRST: i64 = 65_535;

/// One of the entries of a repeated entry.
pub(super) struct Repetition {
    /// Name, with its number.
    pub(super) name: String,
    /// Number, or `None` if there is no `count`.
    number: Option<i64>,
}

impl Repetition {
    /// True if `text` differs between repetitions.
    pub(super) fn changes(&self, text: &str) -> bool {
        self.number.is_some() && text.contains(PLACE)
    }

    /// Returns `text` with the number of this repetition.
    pub(super) fn fill(&self, text: &str) -> String {
        self.number.map_or_else(|| text.to_owned(), |number| text.replace(PLACE, &number.to_string()))
    }
}

/// Entries of `repeated`.
pub(super) fn repetitions(repeated: &Repeated<'_>) -> Checked<impl Iterator<Item = Repetition> + use<>> {
    let Repeated { name, count, first } = repeated;
    readable_name(name)?;
    let has_place = name.get_ref().contains(PLACE);
    match (count, has_place) {
        (Some(_), false) => return Err(needs_place(name)),
        (None, true) => return Err(needs_count(name)),
        _ => {}
    }
    if let (None, Some(first)) = (count, first) {
        let found = format!("first = {} without a count", first.get_ref());
        return Err(Problem::new(first.span(), found, "count beside first", "add count or remove first"));
    }
    let first = number::optional_whole("first", *first, 0..=LARGEST_FIRST)?.unwrap_or(1);
    let count = number::optional_whole("count", *count, 1..=MOST_SUB_DEVICES)?;
    let template = name.get_ref().clone();
    Ok((0..count.unwrap_or(1)).map(move |step| {
        let number = count.map(|_| first + step);
        let unnamed = Repetition { name: String::new(), number };
        Repetition { name: unnamed.fill(&template), number }
    }))
}

fn needs_place(name: &Spanned<String>) -> Problem {
    let found = format!("the name \"{}\" for every one of count", name.get_ref());
    Problem::new(name.span(), found, "{} where the number goes", "write it as \"joint-{}\"")
}

fn needs_count(name: &Spanned<String>) -> Problem {
    let found = format!("{{}} in the name \"{}\" without a count", name.get_ref());
    Problem::new(name.span(), found, "count beside it", "add count or remove the {}")
}
