//! Calls as a table, and all numbers for programs.

use report::{Row, Section, Table};
use serde_json::{Map, Value, json};

use super::{BATCH, Cell, IpcFound, sender, within};
use crate::distribution::{self, Durations};
use crate::peers::hand_over::HandedOver;
use crate::raw::facts;

/// Halves of round trips.
pub(super) fn halved(round_trips: &[u64]) -> Vec<u64> {
    round_trips.iter().map(|ns| ns / 2).collect()
}

/// Table of nanoseconds per call, from batches.
pub(super) fn calls_table(batches: &[Durations]) -> Section {
    let row = |it: &Durations| {
        let summary = it.statistics().summary();
        let each =
            |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| format!("{:.1}", ns / f64::from(BATCH)));
        let whole = |ns: Option<u64>| each(ns.map(|ns| ns as f64));
        let cells = vec![
            whole(summary.p50),
            each(summary.average),
            each(summary.standard_deviation),
            whole(summary.p99),
            whole(summary.maximum),
            whole(summary.minimum),
        ];
        Row { name: it.name.clone(), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: format!("A call without a waiting thread, ns; means of batches of {BATCH} calls"),
        columns: distribution::heads(
            "mechanism",
            &["median", "average", "SD", "99 %", "maximum", "minimum"],
        ),
        rows: batches.iter().map(row).collect(),
    })
}

pub(super) fn values(cells: &[Cell], found: &IpcFound) -> Map<String, Value> {
    let mechanism = |cell: &Cell| {
        json!({
            "name": cell.name,
            "batch_of_calls_ns": Durations::new("", cell.calls.clone()).statistics(),
            "round_trip_same_priority_ns": Durations::new("", cell.same.round_trips.clone()).statistics(),
            "one_way_same_priority_ns": Durations::new("", cell.same.one_ways.clone()).statistics(),
            "round_trip_higher_priority_ns": Durations::new("", cell.higher.round_trips.clone()).statistics(),
            "one_way_higher_priority_ns": Durations::new("", cell.higher.one_ways.clone()).statistics(),
        })
    };
    let ipc = |it: &Durations| json!({ "name": it.name, "batch_of_calls_ns": it.statistics() });
    let peer = |(program, it): &(String, HandedOver)| {
        json!({
            "name": program, "samples": it.rounds,
            "minimum_us": it.minimum, "average_us": it.average, "maximum_us": it.maximum,
        })
    };
    facts([
        ("calls_in_a_batch", BATCH.into()),
        ("mechanisms", cells.iter().map(mechanism).collect()),
        ("ipc", found.ipc.iter().map(ipc).collect()),
        ("peers", found.peers.iter().map(peer).collect()),
        ("within_two_tasks", within::values(&found.within)),
        ("periodic_sender", sender::values(&found.sent)),
    ])
}
