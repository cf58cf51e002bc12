//! `robot.schema.json`, for editors, against the parser.

use onbeat_robot::{RobotConfig, SCHEMA};
use serde_json::{Map, Value, json};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).expect("JSON")
}

/// The schema that a reference names, or this one.
fn resolved<'a>(all: &'a Value, it: &'a Value) -> &'a Value {
    match it["$ref"].as_str() {
        Some(name) => all.pointer(name.trim_start_matches('#')).expect("a definition"),
        None => it,
    }
}

/// A value that the parser reads: of a table what is required.
fn example(all: &Value, it: &Value) -> Value {
    let it = resolved(all, it);
    if let Some(one) = it["anyOf"].as_array().and_then(|any| any.last()) {
        return example(all, one);
    }
    if let Some(value) = it.get("const").or_else(|| it["enum"].get(0)).or_else(|| it["examples"].get(0)) {
        return value.clone();
    }
    match it["type"].as_str() {
        Some("object") => {
            let required = it["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let of = |name: &str| (name.to_owned(), example(all, &it["properties"][name]));
            Value::Object(required.map(of).collect())
        }
        Some("array") if it["minItems"] == 2 => json!([-1.0, 1.0]),
        Some("array") => json!([example(all, &it["items"])]),
        Some("number") => json!(1.0),
        Some("integer") => it.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(true),
        _ => json!("x"),
    }
}

/// Makes a document around a value.
type Place<'a> = &'a dyn Fn(Value) -> Value;

/// Finds every table of the schema. `place` makes a document around a value at that position.
fn walk(
    all: &Value,
    it: &Value,
    path: &str,
    place: Place<'_>,
    seen: &mut dyn FnMut(&str, &Value, Place<'_>),
) {
    let it = resolved(all, it);
    for one in it["anyOf"].as_array().into_iter().flatten() {
        walk(all, one, path, place, seen);
    }
    if let Some(items) = it.get("items") {
        walk(all, items, path, &|value| place(json!([value])), seen);
    }
    if let Some(items) = it.get("additionalProperties").filter(|items| items.is_object()) {
        // Common properties of devices are read for each of their SubDevices.
        if path != "device" {
            walk(all, items, &format!("{path}.NAME"), &|value| place(json!({ "NAME": value })), seen);
        }
    }
    let Some(properties) = it["properties"].as_object() else { return };
    seen(path, it, place);
    for (name, property) in properties {
        let around = |value: Value| {
            let mut table = example(all, it);
            table[name] = value;
            place(table)
        };
        walk(all, property, format!("{path}.{name}").trim_start_matches('.'), &around, seen);
    }
}

/// Words between `expected one of` and the remedy.
fn expected(document: &Value) -> (String, Vec<String>) {
    let text = toml::to_string(document).expect("TOML");
    let error = RobotConfig::parse(&text, "r.toml").expect_err("it is wrong").to_string();
    let words = error.split_once("expected one of ").and_then(|(_, rest)| rest.split_once(": "));
    let mut words: Vec<String> =
        words.map(|(words, _)| words.split(", ").map(str::to_owned).collect()).unwrap_or_default();
    words.sort();
    (format!("{error}\n{text}"), words)
}

fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names
}

// feature(program): a JSON Schema for editors (`onbeat check --schema`), with every key and every word that the parser takes
#[test]
fn every_table_has_the_keys_that_the_parser_takes_and_no_other() {
    let all = schema();
    let mut tables = 0;
    walk(&all, &all, "", &|value| value, &mut |path, it, place| {
        let mut wrong = example(&all, it);
        wrong["zzz"] = json!(1);
        let (error, found) = expected(&place(wrong));
        assert!(error.contains("unknown key \"zzz\""), "{path}: {error}");
        let properties = it["properties"].as_object().map(Map::keys).into_iter().flatten();
        assert_eq!(found, sorted(properties.map(String::as_str)), "{path}: {error}");
        tables += 1;
    });
    assert!(tables > 25, "{tables} tables");
}

#[test]
fn schema_choices_are_exactly_what_the_parser_accepts() {
    let all = schema();
    let mut choices = 0;
    walk(&all, &all, "", &|value| value, &mut |path, it, place| {
        for (name, property) in it["properties"].as_object().into_iter().flatten() {
            let words = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let words = sorted(words);
            if words.is_empty() {
                continue;
            }
            let mut wrong = example(&all, it);
            wrong[name] = json!("zzz");
            let (error, found) = expected(&place(wrong));
            assert_eq!(found, words, "{path}.{name}: {error}");
            choices += 1;
        }
    });
    assert!(choices > 15, "{choices} choices");
}
