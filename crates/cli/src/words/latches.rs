//! Latch inputs of SubDevices, in a table and JSON.

use std::fmt::Write as _;

use ipc::bus::{LatchEdge, LatchInput};
use serde_json::{Value, json};

/// Latch inputs of a SubDevice.
pub(crate) struct Latched {
    pub(crate) position: u16,
    pub(crate) name: String,
    pub(crate) inputs: [LatchInput; 2],
}

/// A line for each input; a star behind what came since the times were read before.
pub(crate) fn text(found: &[Latched]) -> String {
    if found.is_empty() {
        return "no SubDevice has a distributed clock\n".to_owned();
    }
    let names = found.iter().map(|it| it.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "     {:names$}  latch  level  {:>20}   {:>20}\n",
        "name", "rising edge, ns", "falling edge, ns"
    );
    for Latched { position, name, inputs } in found {
        for (number, input) in inputs.iter().enumerate() {
            let level = if input.high { "high" } else { "low" };
            let (rising, falling) = (edge(input.rising), edge(input.falling));
            let line = format!("{position:>4} {name:names$}  {number:>5}  {level:<5}  {rising}  {falling}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text + "ns since 2000-01-01 in the time of the bus; *: since the times were read before\n"
}

fn edge(it: LatchEdge) -> String {
    let time = it.time_ns.map_or_else(|| "-".to_owned(), |time| time.to_string());
    format!("{time:>20}{}", if it.is_new { '*' } else { ' ' })
}

/// An array of the SubDevices.
pub(crate) fn json(found: &[Latched]) -> String {
    let all: Vec<Value> = found
        .iter()
        .map(|it| json!({ "position": it.position, "name": it.name, "inputs": it.inputs }))
        .collect();
    format!("{:#}\n", Value::Array(all))
}
