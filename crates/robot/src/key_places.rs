//! Tables of a robot file that have a key, as the schema lists them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::SCHEMA;

/// Tables of the schema; the variants of one are separate.
static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let mut tables = Vec::new();
    if let Ok(schema) = serde_json::from_str(SCHEMA) {
        collect(&schema, &schema, "", false, &mut tables);
    }
    tables.sort_by_key(|table: &Table| table.path.split_terminator('.').count());
    tables
});

struct Table {
    /// Keys that lead to it, with dots.
    path: String,
    keys: Vec<String>,
    is_list: bool,
}

/// Tables listed at most.
const LISTED: usize = 3;

/// Words for the other tables that have this key, the outer ones first; `None` if there is none, or
/// if no table has exactly the keys `known`.
pub(crate) fn tables_with(key: &str, known: &[&str]) -> Option<String> {
    let has = |table: &Table, key: &str| table.keys.iter().any(|it| it == key);
    let is_own =
        |table: &&Table| table.keys.len() == known.len() && known.iter().all(|key| has(table, key));
    let own: Vec<&str> = TABLES.iter().filter(is_own).map(|table| table.path.as_str()).collect();
    let mut found: Vec<&Table> = Vec::new();
    for table in TABLES.iter().filter(|it| has(it, key) && !own.contains(&it.path.as_str())) {
        if found.iter().all(|it| it.path != table.path) {
            found.push(table);
        }
    }
    if own.is_empty() {
        return None;
    }
    let words: Vec<String> = found.iter().take(LISTED).map(|table| table.header()).collect();
    match &words[..] {
        [] => None,
        [only] => Some(only.clone()),
        words if found.len() > LISTED => Some(format!("{}, ...", words.join(", "))),
        [words @ .., last] => Some(format!("{} or {last}", words.join(", "))),
    }
}

impl Table {
    /// The line that begins it.
    fn header(&self) -> String {
        match self.path.as_str() {
            "" => "the top of the file".to_owned(),
            path if self.is_list => format!("[[{path}]]"),
            path => format!("[{path}]"),
        }
    }
}

/// Adds the tables of a part of the schema, which has this path.
fn collect(schema: &Value, part: &Value, path: &str, is_list: bool, tables: &mut Vec<Table>) {
    let definition = part["$ref"].as_str().and_then(|name| schema.pointer(name.trim_start_matches('#')));
    let part = definition.unwrap_or(part);
    // A list before the one table that may be in its place.
    for choice in part["anyOf"].as_array().into_iter().flatten().rev() {
        collect(schema, choice, path, is_list, tables);
    }
    if let Some(items) = part.get("items") {
        collect(schema, items, path, true, tables);
    }
    if let Some(named) = part.get("additionalProperties").filter(|it| it.is_object()) {
        collect(schema, named, &format!("{path}.NAME"), false, tables);
    }
    let Some(properties) = part["properties"].as_object() else { return };
    tables.push(Table { path: path.to_owned(), keys: properties.keys().cloned().collect(), is_list });
    for (key, value) in properties {
        collect(schema, value, format!("{path}.{key}").trim_start_matches('.'), false, tables);
    }
}
