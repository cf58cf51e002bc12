//! Every fault in every phase of a run, in virtual time: a robot of three simulated drives, one of which homes, on a wire that
//! misbehaves from one instant on.
//!
//! Each cell of the matrix has an outcome with a name; `golden.txt` beside this file is the table of them: the exit code that
//! `onbeat run` gives ([`onbeat_control::verdict`]), "and afterwards", what was found, and if another MainDevice was told of. *Afterwards*
//! is a second run of those cells in Op that can recover, in which what broke for good is mended after half a second, and the
//! cycle runs on: in so many cycles all SubDevices are in Op again by themselves. In every cell:
//!
//! * no drive takes a set-point beyond the rule: three largest steps after an outage, the limit of velocity otherwise;
//! * inputs called fresh are, bit by bit, what the drive put into the frame of the cycle before (`exchange.rs`). A bit of process
//!   data that was altered behind a right check sequence is all that EtherCAT cannot tell; altered headers, generation numbers
//!   and working counters are told;
//! * the fault took place, and where it is one of replies, who received them has counted it: *all well* is not the outcome of a
//!   fault that never was;
//! * the exit code is not 0 where drives or SubDevices were hurt, judged by what these went through;
//! * other MainDevices are told of, and refused where they were first; nobody is told of where nobody is;
//! * the run ends in bounded time.
//!
//! `ONBEAT_MATRIX=write` writes the table anew; `ONBEAT_SEED=N` draws other faults and compares outcomes by their exit codes only.
use crate::support;

mod cell;
mod exchange;
mod judge;
mod robot;
mod second;
mod wire;

use std::fmt::Write as _;
use std::time::Duration;

use cell::{Cell, Fault, Phase};
use robot::{afterwards, run};
use support::PERIOD;

// feature(axes): twenty-one faults in seven phases, a whole second MainDevice among them, each with its outcome and the program's exit code; inputs called fresh are those of the newest exchange, bit by bit; replayed by a seed
#[test]
fn every_fault_in_every_phase_ends_as_the_table_says() {
    let seed = std::env::var("ONBEAT_SEED").ok().and_then(|text| text.parse().ok());
    let mut table = String::new();
    for phase in Phase::ALL {
        let _ = writeln!(table, "{phase:?}");
        for fault in Fault::ALL {
            let cell = Cell::new(phase, fault, seed.unwrap_or(1));
            let outcome = run(cell);
            let _ = writeln!(
                table,
                "  {:<16}{}  {:<18}{}",
                format!("{fault:?}"),
                outcome.exit_code(),
                if cell.can_recover() { back_in_op(afterwards(cell)) } else { "-".to_owned() },
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
    let wanted = |line: &str| match seed {
        None => line.to_owned(),
        // What becomes of an altered bit depends on the bit.
        Some(_) if line.contains("Altered") => String::new(),
        Some(_) => line.chars().take(20).collect(),
    };
    let differing =
        table.lines().zip(golden.lines()).find(|(found, golden)| wanted(found) != wanted(golden));
    assert!(!table.contains("never"), "somebody stays out though the cause has gone:\n{table}");
    assert_eq!(differing, None, "(found, golden); the whole table:\n{table}");
    assert_eq!(table.lines().count(), golden.lines().count(), "{table}");
}

/// Cycles in which all are in Op again once the cause has gone, as a bound.
fn back_in_op(after: Option<Duration>) -> String {
    let cycles = after.map(|after| after.as_nanos() / PERIOD.as_nanos());
    let bound =
        [0, 100, 300, 1000, 3000].into_iter().find(|bound| cycles.is_some_and(|cycles| cycles <= *bound));
    match bound {
        None => "never".to_owned(),
        Some(0) => "at once".to_owned(),
        Some(bound) => format!("in {bound} cycles"),
    }
}

/// The same cell twice is the same run.
// feature(axes): twenty-one faults in seven phases, a whole second MainDevice among them, each with its outcome and the program's exit code; inputs called fresh are those of the newest exchange, bit by bit; replayed by a seed
#[test]
fn a_cell_is_replayed_by_its_seed() {
    for fault in [Fault::Altered, Fault::Reorder, Fault::Truncated, Fault::SecondMaster] {
        let cell = Cell::new(Phase::Op, fault, 7);
        assert_eq!(run(cell).digest(), run(cell).digest(), "{cell:?}");
    }
}
