//! Results as tables and plots.

use report::{Report, Row, Section, Table};

use super::verdict::{self, Change, Mark, Marks};
use super::way::Way;
use super::{Cell, READERS};
use crate::distribution::{self, Durations};

/// Verdict, tables and plots.
pub(super) fn all(cells: &[Cell], report: &mut Report) {
    for line in verdict::lines(cells) {
        report.sections.push(Section::Text(line));
    }
    report.sections.push(requests(cells));
    report.sections.push(changes(cells));
    report.sections.push(noise(cells));
    report.sections.push(Section::Text(SAID.into()));
    let named =
        |cell: &Cell| Durations::new(format!("{}, {} readers", cell.way.name(), cell.readers), cell.all());
    for way in [Way::Ipc, Way::Inheriting, Way::Plain] {
        let of_way: Vec<Durations> = cells.iter().filter(|cell| cell.way == way).map(named).collect();
        let [histogram, tail] = distribution::plots(&format!("One request, {}", way.name()), &of_way);
        report.sections.extend([histogram, tail]);
    }
}

fn requests(cells: &[Cell]) -> Section {
    let row = |cell: &Cell| {
        let it = Marks::of(&cell.all());
        let mut cells: Vec<String> = [it.median, it.tail, it.maximum].map(micros).into();
        cells.push(format!("{:.0}", cell.reads_per_second()));
        cells.push(cell.torn.to_string());
        cells.push(cell.waits.to_string());
        Row { name: name(cell), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "One request of the cycle, us".into(),
        columns: distribution::heads(
            "way, readers",
            &["median", "99.99 %", "maximum", "reads/s", "torn", "waited for"],
        ),
        rows: cells.iter().map(row).collect(),
    })
}

/// Change from no reader to each number of readers, and of our interface under the same load
/// without readers of it, with the noise.
fn changes(cells: &[Cell]) -> Section {
    let row = |name: String, change: &dyn Fn(Mark) -> Option<Change>| {
        let one = |mark| {
            let words = |it: Change| [format!("{:.2}", it.ratio), format!("{:.2}", it.noise)];
            change(mark).map_or_else(|| ["-".into(), "-".into()], words)
        };
        let cells = [one(|marks| marks.median), one(|marks| marks.tail)].concat();
        Row { name, cells, from_paper: false }
    };
    let over_none = cells.iter().filter(|cell| cell.readers > 0).filter_map(|cell| {
        let base = if cell.way == Way::IpcUnread { Way::Ipc } else { cell.way };
        let none = cells.iter().find(|other| other.way == base && other.readers == READERS[0])?;
        Some(row(name(cell), &|mark| Change::between(none, cell, mark)))
    });
    let over_load = cells.iter().filter(|cell| cell.way == Way::Ipc && cell.readers > 0).map(|cell| {
        let name = format!("{} over unread", name(cell));
        row(name, &|mark| verdict::beside_its_load(cells, cell, mark))
    });
    Section::Table(Table {
        caption: "Over the same way without readers; the noise is the same cell measured twice".into(),
        columns: distribution::heads("way, readers", &["median", "its noise", "99.99 %", "its noise"]),
        rows: over_none.chain(over_load).collect(),
    })
}

fn noise(cells: &[Cell]) -> Section {
    let row = |cell: &Cell| {
        let marks = cell.passes.each_ref().map(|pass| Marks::of(pass));
        let pair = |mark: fn(&Marks) -> Option<u64>| marks.each_ref().map(|it| micros(mark(it)));
        let cells = [pair(|it| it.median), pair(|it| it.tail), pair(|it| it.maximum)].concat();
        Row { name: name(cell), cells, from_paper: false }
    };
    Section::Table(Table {
        caption: "The same cell twice, in turns, us".into(),
        columns: distribution::heads(
            "way, readers",
            &["median", "again", "99.99 %", "again", "maximum", "again"],
        ),
        rows: cells.iter().map(row).collect(),
    })
}

fn name(cell: &Cell) -> String {
    format!("{}, {}", cell.way.name(), cell.readers)
}

fn micros(ns: Option<u64>) -> String {
    report::numbers::microseconds(ns.map(|ns| ns as f64))
}

const SAID: &str = "The cycle's request to our IPC never waits: its cost is a copy into memory \
    that other threads may have read just before. A request to a mutex waits for the reader that \
    holds it: with priority inheritance for the reader's copy, without it also for any thread that \
    preempts the reader. \"Waited for\" counts how often the kernel took the cycle's thread off \
    its CPU within a request because it slept. \"Our IPC, unread\" has as many threads reading \
    another IPC.";
