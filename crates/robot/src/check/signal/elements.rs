//! Elements of signals: several values of one kind under one name.

use super::super::Checked;
use crate::error::Problem;
use crate::field::{Number, is_unseen};
use crate::model::NamedSignal;

/// Most elements of a signal.
const MOST: i64 = 256;

/// Names of its elements, `NAME[0]` and up or `NAME.ELEMENT`; its own, if it has none.
pub(crate) fn names(signal: &NamedSignal) -> Checked<Vec<String>> {
    let name = signal.name.get_ref();
    let Some(elements) = &signal.elements else { return Ok(vec![name.clone()]) };
    let named = |values: &[toml::Value]| -> Option<Vec<String>> {
        let fits = |text: &&str| !text.trim().is_empty() && !text.chars().any(is_unseen);
        values
            .iter()
            .map(|value| value.as_str().filter(fits).map(|text| format!("{name}.{text}")))
            .collect()
    };
    let names = match elements.get_ref() {
        toml::Value::Integer(count) if (1..=MOST).contains(count) => {
            Some((0..*count).map(|number| format!("{name}[{number}]")).collect())
        }
        toml::Value::Array(values) if (1..=MOST as usize).contains(&values.len()) => named(values),
        _ => None,
    };
    names.ok_or_else(|| {
        let found = format!("elements = {} for the signal \"{name}\"", shown(elements.get_ref()));
        let expected = format!("their number, 1 to {MOST}, or their names, as [\"x\", \"y\", \"z\"]");
        Problem::new(elements.span(), found, expected, "correct elements")
    })
}

/// A value as the file has it, without the hundreds of digits of a huge number.
fn shown(value: &toml::Value) -> String {
    match value {
        toml::Value::Float(number) => Number(*number).to_string(),
        toml::Value::Array(values) => {
            let all: Vec<String> = values.iter().map(shown).collect();
            format!("[{}]", all.join(", "))
        }
        other => other.to_string(),
    }
}
