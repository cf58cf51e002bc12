//! Every fault in every phase of a run, in virtual time: a robot of three simulated drives, one of which homes, on a wire that
//! misbehaves from one instant on.
//!
//! Each cell of the matrix has an outcome with a name; `golden.txt` beside this file is the table of them. In every cell: no drive takes
//! a set-point beyond the rule (three largest steps after an outage, the limit of velocity otherwise), no input that is called fresh is
//! older than the wire and the drive take (a reply with a changed bit aside), the run ends in bounded time, and what went wrong shows in
//! its exit code.
//!
//! `ONBEAT_MATRIX=write` writes the table anew; `ONBEAT_SEED=N` draws other faults and compares outcomes by their exit codes only.
#![allow(clippy::unwrap_used, reason = "a test stops where it cannot go on")]

#[path = "../support/mod.rs"]
mod support;

mod judge;
mod robot;
mod wire;

use std::fmt::Write as _;

use robot::{Cell, run};
use wire::{Fault, Phase};

#[test]
fn every_fault_in_every_phase_ends_as_the_table_says() {
    let seed = std::env::var("ONBEAT_SEED").ok().and_then(|text| text.parse().ok());
    let mut table = String::new();
    for phase in Phase::ALL {
        let _ = writeln!(table, "{phase:?}");
        for fault in Fault::ALL {
            let outcome = run(Cell { phase, fault, seed: seed.unwrap_or(1) });
            let _ = writeln!(
                table,
                "  {:<16}{}  {}",
                format!("{fault:?}"),
                outcome.exit_code(),
                outcome.name()
            );
        }
    }
    let golden = include_str!("golden.txt");
    if std::env::var("ONBEAT_MATRIX").is_ok_and(|it| it == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fault_matrix/golden.txt");
        std::fs::write(path, &table).unwrap();
        return;
    }
    let wanted =
        |line: &str| if seed.is_some() { line.chars().take(20).collect() } else { line.to_owned() };
    let differing =
        table.lines().zip(golden.lines()).find(|(found, golden)| wanted(found) != wanted(golden));
    assert_eq!(differing, None, "(found, golden); the whole table:\n{table}");
    assert_eq!(table.lines().count(), golden.lines().count(), "{table}");
}

/// The same cell twice is the same run.
#[test]
fn a_cell_is_replayed_by_its_seed() {
    for fault in [Fault::Corrupt, Fault::Reorder, Fault::Truncated] {
        let cell = Cell { phase: Phase::Op, fault, seed: 7 };
        assert_eq!(run(cell).digest(), run(cell).digest(), "{cell:?}");
    }
}
