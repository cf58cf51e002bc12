//! Facts and columns of a recording as metadata of an MCAP file: names and texts.

use std::collections::BTreeMap;

use mcap::records::Metadata;
use serde_json::Value;

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

/// Header of metadata with the kind and the columns of the rows; `None` if it lacks them.
pub(super) fn header(rows: &BTreeMap<String, String>, facts: Facts) -> Option<Header> {
    let columns = serde_json::from_str(rows.get("columns")?).ok()?;
    Some(Header { what: rows.get("what")?.clone(), columns, facts })
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
