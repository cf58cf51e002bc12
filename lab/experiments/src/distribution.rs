//! Distributions of durations as rows of tables and lines of plots.

use record::{Statistics, Summary};
use report::plots::{self, Samples};
use report::{Row, Section, Table};

/// Durations of one kind, in the order of measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Durations {
    /// Name of the quantity.
    pub(crate) name: String,
    /// Durations in nanoseconds.
    pub(crate) ns: Vec<u64>,
}

impl Durations {
    pub(crate) fn new(name: impl Into<String>, ns: Vec<u64>) -> Self {
        Self { name: name.into(), ns }
    }

    /// Statistics of the durations; the largest one is given with its index.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::new();
        for (place, &duration) in self.ns.iter().enumerate() {
            statistics.record(duration, place as u64);
        }
        statistics
    }

    /// Row of median, average, standard deviation, tail and extremes, in microseconds.
    pub(crate) fn row(&self) -> Row {
        Row { name: self.name.clone(), cells: spread(&self.statistics().summary()), from_paper: false }
    }
}

/// Headings of [`Durations::row`], below `name`.
pub(crate) fn columns(name: &str) -> Vec<String> {
    heads(name, &["median", "average", "SD", "99 %", "99.9 %", "maximum", "minimum"])
}

/// Headings of a table: `name` and the others.
pub(crate) fn heads(name: &str, others: &[&str]) -> Vec<String> {
    std::iter::once(name).chain(others.iter().copied()).map(str::to_owned).collect()
}

fn spread(it: &Summary) -> Vec<String> {
    let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
    // Fewer samples than that have no such tail.
    let tail = |ns: Option<u64>, samples: u64| whole(ns).filter(|_| it.count >= samples);
    [
        whole(it.p50),
        it.average,
        it.standard_deviation,
        tail(it.p99, 100),
        tail(it.p99_9, 1_000),
        whole(it.maximum),
        whole(it.minimum),
    ]
    .map(report::numbers::microseconds)
    .into()
}

/// Table of such rows.
pub(crate) fn table(caption: &str, name: &str, cells: &[Durations]) -> Section {
    let rows = cells.iter().map(Durations::row).collect();
    Section::Table(Table { caption: caption.into(), columns: columns(name), rows })
}

/// Histogram and tail distribution, with a line for each distribution.
pub(crate) fn plots(caption: &str, cells: &[Durations]) -> [Section; 2] {
    let micros = |it: &Durations| it.ns.iter().map(|&ns| ns as f64 / 1e3).collect::<Vec<f64>>();
    let values: Vec<Vec<f64>> = cells.iter().map(micros).collect();
    let samples: Vec<Samples> =
        cells.iter().zip(&values).map(|(cell, values)| Samples { name: &cell.name, values }).collect();
    [
        Section::Histogram(plots::histogram(&format!("{caption}: how often each came"), "us", &samples)),
        Section::Tail(plots::tail(&format!("{caption}: share above each"), "us", &samples)),
    ]
}

/// Vector with room for `count` numbers and every page touched: pushing them neither allocates nor
/// faults.
pub(crate) fn resident(count: usize) -> Vec<u64> {
    let mut memory = vec![u64::MAX; count];
    std::hint::black_box(&mut memory).clear();
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_microseconds_and_omit_tails_of_few_samples() {
        let durations = Durations::new("x", (1..=200).map(|it| it * 1_000).collect());
        let cells = durations.row().cells;
        assert_eq!(cells.len() + 1, columns("of").len());
        assert_eq!((&*cells[1], &*cells[5], &*cells[6]), ("100.500", "200.000", "1.000"));
        // Percentiles are accurate to 0.1 %.
        assert!(cells[3].starts_with("198.") && cells[4] == "-", "{cells:?}");
        assert!(Durations::new("x", Vec::new()).row().cells.iter().all(|cell| cell == "-"));
    }
}
