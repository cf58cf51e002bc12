//! Every fault in every phase of a run, in virtual time: a robot of three simulated drives, one of
//! which homes, on a wire that misbehaves from one instant on.
//!
//! Each cell of the matrix has a named outcome; `golden.txt` in this folder is their table: the
//! exit code of `onbeat run` ([`onbeat_control::verdict`]), "and afterwards", the findings, and
//! whether another MainDevice was reported. *Afterwards* is a second run: permanent damage is
//! repaired half a second later, a second MainDevice falls silent after two, and the cycle runs on:
//!
//! | afterwards | |
//! |---|---|
//! | stays in Op | no SubDevice left Op |
//! | before its end | all SubDevices were in Op for good while the cause still lasted |
//! | in N cycles | at most N periods after the end of the cause, all SubDevices were in Op for good |
//! | not up | the bus did not come up: exit code 1; a further run starts again |
//! | - | the cause stays, or the run was ending |
//!
//! During the bring-up damage is repaired after 0.3 s. The bring-up waits for a cable that is out
//! for less than the half second in which a SubDevice has to answer, for a mailbox and for lost
//! frames. It does not wait for a SubDevice that the scan did not count, a SubDevice that has lost
//! its power and with it its address and configuration, one that refuses a state, an EEPROM that is
//! blank when it is read, an interface that refuses frames before the first cycle, and another
//! MainDevice: the operator is present, and nothing moves yet. In Op there is no *not up*: all
//! recover. Parts that a SubDevice does not need in Op are combined with a fall out of Op
//! ([`cell::Cell::falls`]). In every cell:
//!
//! * no set-point leaves on the wire beyond position, velocity, written acceleration and jerk, by
//!   the number of its cycle (`stream.rs`). From the third cycle to the end of an outage, and over
//!   skipped releases, the difference over the cycles between counts;
//! * no set-point arrives at a drive beyond position, or farther than 1.05 times the limit of
//!   velocity over the cycles between (`motion.rs`);
//! * the true position of each shaft stays within its limits and the distance in which it brakes.
//!   An axis is unreferenced where its drive counts from elsewhere or its shaft was turned unseen
//!   in Op, and does not move after that, though its controller resets it again and again;
//! * inputs called fresh are, bit by bit, the inputs that the drive put into the frame of the
//!   previous cycle (`exchange.rs`). EtherCAT cannot detect an altered bit of process data behind a
//!   right check sequence, and nothing else; altered headers, generation numbers and working
//!   counters are reported;
//! * the fault took place, and a receiver of faulty replies has counted them: *all well* is not the
//!   outcome of a fault that never was;
//! * the exit code is not 0 if drives or SubDevices had faults, by their own records;
//! * other MainDevices are reported, and refused where they were first; none is reported where none
//!   is;
//! * the run ends in bounded time.
//!
//! `ONBEAT_CELL="Op TurnOff"` plays only the cells with this in their names, and prints their part
//! of the table; `ONBEAT_MATRIX=write` rewrites the table; `ONBEAT_SEED=N` draws other faults and
//! compares outcomes by their exit codes only.
use crate::support;

mod cell;
mod exchange;
mod judge;
mod motion;
mod robot;
mod second;
mod stream;
mod wire;

use cell::{Cell, Fault, Phase};
use robot::{afterwards, run};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::PERIOD;
use wire::Back;

// feature(axes): thirty-seven faults, including a second MainDevice, in eight phases, one of them with axes in pp, pv and tq; each with outcome and exit code; fresh inputs equal the newest exchange, bit by bit; repeatable by a seed
#[test]
fn every_fault_in_every_phase_ends_as_the_table_says() {
    let seed = std::env::var("ONBEAT_SEED").ok().and_then(|text| text.parse().ok());
    let table = Mutex::new(Phase::ALL.map(|_| (String::new(), Vec::new())));
    let next = AtomicUsize::new(0);
    // Phases run at the same time, where there are processors for them.
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..processors.min(Phase::ALL.len()) {
            scope.spawn(|| {
                while let Some(&phase) = Phase::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let part = part(phase, seed.unwrap_or(1));
                    table.lock().unwrap()[phase as usize] = part;
                }
            });
        }
    });
    let (parts, failed): (Vec<_>, Vec<_>) = table.into_inner().unwrap().into_iter().unzip();
    let (table, failed) = (parts.concat(), failed.concat());
    assert!(failed.is_empty(), "{} cells failed:\n{}", failed.len(), failed.join("\n"));
    if only_cells().is_some() {
        return println!("{table}");
    }
    let golden = include_str!("golden.txt");
    if std::env::var("ONBEAT_MATRIX").is_ok_and(|it| it == "write") {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fault_matrix/golden.txt");
        std::fs::write(path, &table).unwrap();
        return;
    }
    let wanted = |line: &str| match seed {
        None => line.to_owned(),
        // The effect of an altered bit depends on the bit.
        Some(_) if line.contains("Altered") => String::new(),
        Some(_) => line.chars().take(20).collect(),
    };
    let differing =
        table.lines().zip(golden.lines()).find(|(found, golden)| wanted(found) != wanted(golden));
    assert!(!table.contains("never"), "somebody stays out though the cause has gone:\n{table}");
    assert_eq!(differing, None, "(found, golden); the whole table:\n{table}");
    assert_eq!(table.lines().count(), golden.lines().count(), "{table}");
}

/// Part of the names of the cells that are played alone.
fn only_cells() -> Option<String> {
    std::env::var("ONBEAT_CELL").ok()
}

/// The part of the table that is of a phase, and the cells that broke a rule.
fn part(phase: Phase, seed: u64) -> (String, Vec<String>) {
    let (mut table, mut failed) = (format!("{phase:?}\n"), Vec::new());
    let only = only_cells();
    for fault in Fault::ALL {
        if only.as_ref().is_some_and(|it| !format!("{phase:?} {fault:?}").contains(it.as_str())) {
            continue;
        }
        let cell = Cell::new(phase, fault, seed);
        let line = std::panic::catch_unwind(|| {
            let outcome = run(cell);
            let after = if cell.can_heal() { in_op(cell, afterwards(cell)) } else { "-".to_owned() };
            let (exit_code, name) = (outcome.exit_code(), outcome.name());
            format!("  {:<16}{exit_code}  {after:<18}{name}", format!("{fault:?}"))
        });
        match line {
            Ok(line) => writeln!(table, "{line}").unwrap(),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map_or("", String::as_str);
                failed.push(format!("{phase:?} {fault:?}: {text}"));
            }
        }
    }
    (table, failed)
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
// feature(axes): thirty-seven faults, including a second MainDevice, in eight phases, one of them with axes in pp, pv and tq; each with outcome and exit code; fresh inputs equal the newest exchange, bit by bit; repeatable by a seed
#[test]
fn a_cell_is_replayed_by_its_seed() {
    for fault in [Fault::Altered, Fault::Reorder, Fault::Truncated, Fault::SecondMaster] {
        let cell = Cell::new(Phase::Op, fault, 7);
        assert_eq!(run(cell).digest(), run(cell).digest(), "{cell:?}");
    }
}
