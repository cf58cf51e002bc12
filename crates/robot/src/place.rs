//! Places of values in the text of a file.

use std::ops::Range;

use toml::Spanned;
use toml::de::DeValue;

/// Place of a value in the text; of a value that is not there, the place of the table it would be
/// in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'s> {
    start: usize,
    value: Option<&'s DeValue<'s>>,
}

impl<'s> Place<'s> {
    /// Place of all tables of a file.
    pub(crate) fn of(root: &'s Spanned<DeValue<'s>>) -> Self {
        Self { start: root.span().start, value: Some(root.get_ref()) }
    }

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
