//! Expansion of a repeated entry: `count`, `first`, and `{}` in names.

use std::collections::HashMap;

use super::{Checked, check_readable, unknown_name};
use crate::error::Problem;
use crate::field::Place;

/// Placeholder of the number in a name.
const PLACE: &str = "{}";

/// One of the entries of a repeated entry.
pub(super) struct Repetition {
    /// Name, with its number.
    pub(super) name: String,
    /// Number, or `None` if there is no `count`.
    number: Option<usize>,
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

/// Repetitions of the entry at `place`.
pub(super) fn repetitions(
    name: &str,
    count: Option<u16>,
    first: Option<u16>,
    place: Place<'_>,
) -> Checked<impl Iterator<Item = Repetition> + use<>> {
    check_readable(name, place.key("name"))?;
    match (count, name.contains(PLACE)) {
        (Some(_), false) => {
            let found = format!("the name \"{name}\" for every one of count");
            let (expected, remedy) = ("{} where the number goes", "write it as \"joint-{}\"");
            return Err(Problem::new(place.key("name"), found, expected, remedy));
        }
        (None, true) => {
            let found = format!("{{}} in the name \"{name}\" without a count");
            let remedy = "add count or remove the {}";
            return Err(Problem::new(place.key("name"), found, "{} only with count", remedy));
        }
        _ => {}
    }
    if let (None, Some(first)) = (count, first) {
        let found = format!("first = {first} without a count");
        let remedy = "add count or remove first";
        return Err(Problem::new(place.key("first"), found, "first only with count", remedy));
    }
    let (first, template) = (usize::from(first.unwrap_or(1)), name.to_owned());
    Ok((0..count.unwrap_or(1).into()).map(move |step| {
        let number = count.map(|_| first + step);
        let unnamed = Repetition { name: String::new(), number };
        Repetition { name: unnamed.fill(&template), number }
    }))
}

/// SubDevice of an axis, or `with` a part of it.
pub(super) fn axis_sub_device(
    wanted: &str,
    repetition: &Repetition,
    positions: &HashMap<&str, usize>,
    with: &str,
    place: Place<'_>,
) -> Checked<usize> {
    let name = repetition.fill(wanted);
    positions.get(name.as_str()).copied().ok_or_else(|| {
        let found = format!("axis \"{}\"{with} on the unknown SubDevice \"{name}\"", repetition.name);
        let expected = "the name of a SubDevice on the bus";
        unknown_name(place, found, expected, &name, positions.keys().copied(), "sub_device")
    })
}
