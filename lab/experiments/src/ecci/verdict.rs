//! Verdict on the change of a cost with the number of readers, relative to its noise, and the
//! tables.

use report::{Report, Row, Section, Table};

use super::way::Way;
use super::{Cell, PASSES, READERS};
use crate::distribution;
use crate::distribution::Durations;

/// Median and tail of a cell, ns; `None` with too few samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) median: Option<u64>,
    /// Upper bound of 99.99 % of the samples.
    pub(super) tail: Option<u64>,
    pub(super) maximum: Option<u64>,
}

impl Marks {
    pub(super) fn of(ns: &[u64]) -> Self {
        let statistics = Durations::new("", ns.to_vec()).statistics();
        Self {
            median: statistics.percentile(0.5),
            tail: statistics.percentile(0.9999).filter(|_| ns.len() >= 10_000),
            maximum: statistics.maximum(),
        }
    }
}

/// Selector of one of the marks.
pub(super) type Mark = fn(&Marks) -> Option<u64>;

/// Ratio of a mark between two cells, and the noise of repeated measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) ratio: f64,
    /// Noise, at least 1: the larger of the two cells' own ratios between their passes.
    pub(super) noise: f64,
}

impl Change {
    /// Change of `mark` from one cell to another.
    pub(super) fn between(base: &Cell, cell: &Cell, mark: Mark) -> Option<Self> {
        let of = |ns: &[u64]| mark(&Marks::of(ns)).map(|ns| ns.max(1) as f64);
        let noise = |cell: &Cell| {
            let [one, other] = [0, PASSES - 1].map(|pass| of(&cell.passes[pass]));
            let (one, other) = (one?, other?);
            Some((one / other).max(other / one))
        };
        Some(Self { ratio: of(&cell.all())? / of(&base.all())?, noise: noise(base)?.max(noise(cell)?) })
    }

    /// True if the change is within the noise of repeated measurements.
    pub(super) fn is_noise(&self) -> bool {
        self.ratio.max(1.0 / self.ratio) <= self.noise
    }
}

/// Line on each way: change of its cost from no reader to the most.
pub(super) fn lines(cells: &[Cell]) -> Vec<String> {
    [Way::Ipc, Way::Inheriting, Way::Plain].into_iter().filter_map(|way| line(cells, way)).collect()
}

fn line(cells: &[Cell], way: Way) -> Option<String> {
    let mut of_way = cells.iter().filter(|cell| cell.way == way);
    let (none, most) = (of_way.next()?, of_way.next_back()?);
    let median = Change::between(none, most, |marks| marks.median);
    let Some(median) = median else {
        return Some(format!("{}: too few requests for a verdict.", way.name()));
    };
    let tail = Change::between(none, most, |marks| marks.tail);
    let mut said = format!(
        "{}, {} readers compared with none: the median is {}",
        way.name(),
        most.readers,
        words(&median)
    );
    match &tail {
        Some(tail) => said += &format!("; 99.99 % are {}", words(tail)),
        None => said += "; too few requests for 99.99 %",
    }
    let unchanged = median.is_noise() && tail.is_none_or(|tail| tail.is_noise());
    said += if unchanged { ". It does not change with the readers." } else { ". It changes." };
    if way == Way::Ipc {
        said += &beside_the_load(cells);
        said += &from_the_first_to_the_most(cells);
    }
    Some(said)
}

/// Change caused by the reads alone: compared with as many threads that read another interface.
fn beside_the_load(cells: &[Cell]) -> String {
    let said: Vec<String> = cells
        .iter()
        .filter(|cell| cell.way == Way::Ipc)
        .filter_map(|cell| Some((cell.readers, beside_its_load(cells, cell, |marks| marks.median)?)))
        .map(|(readers, change)| format!("{:.2} with {readers} (noise {:.2})", change.ratio, change.noise))
        .collect();
    if said.is_empty() {
        return String::new();
    }
    format!(
        " Compared with as many threads that read another IPC, so that only the reading of this \
         IPC differs, the ratio of the medians is {}.",
        said.join(", ")
    )
}

/// Change of a mark of our interface from the cell with as many threads that read another
/// interface.
pub(super) fn beside_its_load(cells: &[Cell], cell: &Cell, mark: Mark) -> Option<Change> {
    let unread = cells.iter().find(|other| other.way == Way::IpcUnread && other.readers == cell.readers)?;
    Change::between(unread, cell, mark)
}

/// Sentence on the change from one reader to the most.
fn from_the_first_to_the_most(cells: &[Cell]) -> String {
    let mut read = cells.iter().filter(|cell| cell.way == Way::Ipc && cell.readers > 0);
    let (Some(first), Some(most)) = (read.next(), read.next_back()) else { return String::new() };
    let change = |mark| Change::between(first, most, mark);
    let Some(median) = change(|marks| marks.median) else { return String::new() };
    let grows = |change: &Change| change.ratio > change.noise;
    let more = grows(&median) || change(|marks| marks.tail).is_some_and(|tail| grows(&tail));
    let verdict = if more { "more readers cost more" } else { "more readers cost no more" };
    format!(" From {} reader to {}, {verdict} than one.", first.readers, most.readers)
}

fn words(change: &Change) -> String {
    let place = if change.is_noise() { "within the noise" } else { "beyond the noise" };
    format!("{:.2} times as high, {place} of {:.2}", change.ratio, change.noise)
}

/// Verdict, tables and plots.
pub(super) fn all(cells: &[Cell], report: &mut Report) {
    for line in lines(cells) {
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
        row(name, &|mark| beside_its_load(cells, cell, mark))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(way: Way, readers: usize, passes: [u64; PASSES]) -> Cell {
        let passes = passes.map(|ns| vec![ns; 20_000]);
        Cell { passes, ..Cell::new(way, readers) }
    }

    #[test]
    fn what_differs_less_than_the_same_twice_is_noise() {
        let none = cell(Way::Ipc, 0, [1_000, 1_100]);
        let most = cell(Way::Ipc, 64, [1_050, 1_060]);
        let median = |marks: &Marks| marks.median;
        assert!(Change::between(&none, &most, median).unwrap().is_noise());
        let slower = cell(Way::Ipc, 64, [2_000, 2_000]);
        let change = Change::between(&none, &slower, median).unwrap();
        assert!(!change.is_noise() && change.ratio > 1.8, "{change:?}");
        let faster = cell(Way::Ipc, 64, [500, 500]);
        assert!(!Change::between(&none, &faster, median).unwrap().is_noise(), "a change either way is one");
    }

    #[test]
    fn each_mechanism_has_a_line_and_our_ipc_is_apart_from_load() {
        let cells = [
            cell(Way::Ipc, 0, [1_000, 1_100]),
            cell(Way::Ipc, 64, [1_050, 1_060]),
            cell(Way::Plain, 0, [1_000, 1_000]),
            cell(Way::Plain, 64, [9_000, 9_000]),
            cell(Way::IpcUnread, 64, [1_050, 1_060]),
        ];
        let said = lines(&cells);
        assert_eq!(said.len(), 2);
        assert!(
            said[0].contains("does not change with the readers")
                && said[0].contains("another IPC")
                && said[0].contains("is 1.00 with 64 (noise 1.01)"),
            "{said:?}"
        );
        assert!(
            said[1].contains("9.00 times as high, beyond the noise of 1.00")
                && said[1].ends_with("It changes.")
        );
    }

    #[test]
    fn cost_of_a_first_reader_is_apart_from_cost_per_reader() {
        let with = |most| {
            let cells = [
                cell(Way::Ipc, 0, [600, 600]),
                cell(Way::Ipc, 1, [900, 900]),
                cell(Way::Ipc, 64, most),
                cell(Way::IpcUnread, 1, [600, 600]),
                cell(Way::IpcUnread, 64, [600, 600]),
            ];
            lines(&cells).remove(0)
        };
        let constant = with([900, 900]);
        assert!(constant.contains("It changes."), "{constant}");
        assert!(constant.contains("is 1.50 with 1 (noise 1.00), 1.50 with 64"), "{constant}");
        assert!(
            constant.ends_with("From 1 reader to 64, more readers cost no more than one."),
            "{constant}"
        );
        let cheaper = with([800, 800]);
        assert!(cheaper.ends_with("more readers cost no more than one."), "{cheaper}");
        let grown = with([2_000, 2_000]);
        assert!(grown.ends_with("From 1 reader to 64, more readers cost more than one."), "{grown}");
    }

    #[test]
    fn a_cell_without_requests_has_no_verdict() {
        let empty = [Cell::new(Way::Plain, 0), Cell::new(Way::Plain, 64)];
        assert_eq!(lines(&empty), ["plain mutex cache: too few requests for a verdict."]);
    }
}
