//! Facts and columns of a recording as metadata of an MCAP file: names and texts.

use std::collections::BTreeMap;
use std::fmt;

use mcap::records::Metadata;
use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

use super::layout::MOST_COLUMNS;
use crate::recording::{Facts, Header};

/// Metadata with the facts of the beginning.
pub(super) const BEGIN: &str = "onbeat";

/// Metadata with the kind and the columns of the rows.
pub(super) const ROWS: &str = "onbeat_rows";

/// Metadata with the facts of the end.
pub(super) const END: &str = "onbeat_end";

/// Facts as metadata: a text as it is, another fact as JSON. A text that is also JSON, as `5`, is
/// quoted.
pub(super) fn metadata(name: &str, facts: &Facts) -> Metadata {
    let is_json = |text: &str| serde_json::from_str::<Value>(text).is_ok();
    let text = |value: &Value| match value.as_str() {
        Some(text) if !is_json(text) => text.to_owned(),
        _ => value.to_string(),
    };
    let metadata: BTreeMap<String, String> =
        facts.iter().map(|(name, value)| (name.clone(), text(value))).collect();
    Metadata { name: name.to_owned(), metadata }
}

/// Facts of metadata.
pub(super) fn facts(metadata: BTreeMap<String, String>) -> Facts {
    let value = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    metadata.into_iter().map(|(name, text)| (name, value(text))).collect()
}

/// Kind and columns of the rows as metadata.
pub(super) fn rows(header: &Header) -> Metadata {
    let columns = header.columns.iter().map(|it| Value::from(it.as_str())).collect::<Value>();
    let metadata = [("what", header.what.clone()), ("columns", columns.to_string())];
    let metadata = metadata.map(|(name, text)| (name.to_owned(), text)).into_iter().collect();
    Metadata { name: ROWS.to_owned(), metadata }
}

/// Header of metadata with the kind and the columns of the rows, and their number: a header has
/// the first [`MOST_COLUMNS`]. `None` if the metadata lacks them.
pub(super) fn header(rows: &BTreeMap<String, String>, facts: Facts) -> Option<(Header, usize)> {
    let Columns { first: columns, count } = serde_json::from_str(rows.get("columns")?).ok()?;
    Some((Header { what: rows.get("what")?.clone(), columns, facts }, count))
}

/// Names of columns: the first ones, and the number of all.
struct Columns {
    first: Vec<String>,
    count: usize,
}

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ColumnsVisitor)
    }
}

struct ColumnsVisitor;

impl<'de> Visitor<'de> for ColumnsVisitor {
    type Value = Columns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of columns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Columns, A::Error> {
        let mut first = Vec::new();
        while first.len() < MOST_COLUMNS {
            match names.next_element()? {
                Some(name) => first.push(name),
                None => break,
            }
        }
        let mut count = first.len();
        while names.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Columns { first, count })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn facts_come_back_with_their_types() {
        let all = json!({
            "robot": "six-axis", "number": "5", "quoted": "\"a\"", "none": null, "period_ns": 1_000_000,
            "list": ["a", 1.5], "cpu": { "requested": 1 }, "locked": true, "text": "true", "empty": "",
        });
        let all = all.as_object().unwrap();
        let written = metadata(BEGIN, all);
        assert_eq!(written.metadata["robot"], "six-axis");
        assert_eq!(written.metadata["number"], "\"5\"");
        assert_eq!(&facts(written.metadata), all);
    }
}
