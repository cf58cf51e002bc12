//! Every fault in every phase of a run, in virtual time: a robot of three simulated drives, one of which homes, on a wire that
//! misbehaves from one instant on.
//!
//! Each cell of the matrix has an outcome with a name; `golden.txt` beside this file is the table of them: the exit code that
//! `onbeat run` gives ([`onbeat_control::verdict`]), "and afterwards", what was found, and if another MainDevice was told of. *Afterwards*
//! is a second run, in which what broke for good is mended half a second later, a second MainDevice falls silent after two, and the cycle runs on:
//!
//! | afterwards | |
//! |---|---|
//! | stays in Op | no SubDevice left Op |
//! | before its end | all SubDevices were in Op for good while the cause still lasted |
//! | in N cycles | so many periods after the end of the cause, at most, all SubDevices were in Op by themselves, for good |
//! | not up | the bus did not come up: the run has ended with an exit code 1, and a further one begins anew |
//! | - | the cause stays, or the run was ending |
//!
//! On the way up what broke is mended after 0.3 s. A cable that is out for less than the half second in which a SubDevice has to answer is
//! waited for, as are a mailbox and lost frames. Not waited for are a SubDevice that the scan did not count, one that has lost its power, and with it the
//! address and all that it was told, one that refuses a state, an EEPROM that is blank when it is read, an interface that refuses frames before the first
//! cycle, and another MainDevice: whoever starts the robot is there, and nothing moves yet. In Op there is no *not up*: all recover. What a
//! SubDevice in Op does not need is combined with a fall out of Op ([`cell::Cell::falls`]). In every cell:
//!
//! * no drive takes a set-point beyond the rule: three largest steps after an outage, the limit of velocity otherwise;
//! * inputs called fresh are, bit by bit, what the drive put into the frame of the cycle before (`exchange.rs`). A bit of process
//!   data that was altered behind a right check sequence is all that EtherCAT cannot tell; altered headers, generation numbers
//!   and working counters are told;
//! * the fault took place, and where it is one of replies, who received them has counted it: *all well* is not the outcome of a
//!   fault that never was;
//! * the exit code is not 0 where drives or SubDevices were hurt, judged by what these went through;
//! * other MainDevices are reported, and refused where they were first; none is reported where none is;
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

use cell::{Cell, Fault, Phase};
use robot::{afterwards, run};
use std::fmt::Write as _;
use support::PERIOD;
use wire::Back;

// feature(axes): twenty-three faults in eight phases, one of them with axes in pp, pv and tq, a whole second MainDevice among them, each with its outcome and the program's exit code; inputs called fresh are those of the newest exchange, bit by bit; replayed by a seed
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
                if cell.can_heal() { in_op(cell, afterwards(cell)) } else { "-".to_owned() },
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

/// Cycles in which all are in Op once the cause has gone, as a bound.
fn in_op(cell: Cell, back: Option<Back>) -> String {
    let after = match back {
        None if cell.is_in_op() => return "never".to_owned(),
        None => return "not up".to_owned(),
        Some(Back::Stayed) => return "stays in Op".to_owned(),
        Some(Back::BeforeItsEnd) => return "before its end".to_owned(),
        Some(Back::After(after)) => after.as_nanos().div_ceil(PERIOD.as_nanos()),
    };
    match [30, 100, 300, 1000, 3000].into_iter().find(|&bound| after <= bound) {
        Some(bound) => format!("in {bound} cycles"),
        None => "never".to_owned(),
    }
}

/// The same cell twice is the same run.
// feature(axes): twenty-three faults in eight phases, one of them with axes in pp, pv and tq, a whole second MainDevice among them, each with its outcome and the program's exit code; inputs called fresh are those of the newest exchange, bit by bit; replayed by a seed
#[test]
fn a_cell_is_replayed_by_its_seed() {
    for fault in [Fault::Altered, Fault::Reorder, Fault::Truncated, Fault::SecondMaster] {
        let cell = Cell::new(Phase::Op, fault, 7);
        assert_eq!(run(cell).digest(), run(cell).digest(), "{cell:?}");
    }
}
