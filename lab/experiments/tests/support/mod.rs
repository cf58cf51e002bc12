//! Parts that tests of experiments share: a folder that goes away, and a look at what was found.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use onbeat_experiments::{Context, Error, Programs};
use record::Recording;
use report::{Report, Section, Table};

/// A folder below the system's for temporary files, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onbeat-measure-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The recording of this name.
    pub fn recording(&self, name: &str) -> Recording {
        onbeat_experiments::runner::read(&self.0.join(format!("{name}.mcap"))).unwrap()
    }

    /// Number of recordings.
    pub fn recordings(&self) -> usize {
        let files = fs::read_dir(&self.0).unwrap().map(|it| it.unwrap().path());
        files.filter(|it| it.extension().is_some_and(|it| it == "mcap")).count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs an experiment in `folder`.
pub fn conduct(folder: &Folder, run: impl FnOnce(&Context) -> Result<Report, Error>) -> Report {
    conduct_as(folder, false, &|_| (), run)
}

/// Resumes a complete run: nothing is measured, and the numbers are the same.
pub fn goes_on(folder: &Folder, report: &Report, run: impl FnOnce(&Context) -> Result<Report, Error>) {
    let said = std::sync::Mutex::new(Vec::new());
    let again = conduct_as(folder, true, &|line| said.lock().unwrap().push(line.to_owned()), run);
    assert_eq!(again.values, report.values);
    let said = said.into_inner().unwrap();
    assert!(!said.is_empty() && said.iter().all(|line| line.ends_with(": measured before")), "{said:?}");
}

/// Context of an experiment in `folder`, which ends once `stop` is set.
pub fn context<'a>(folder: &Folder, stop: &'a AtomicBool) -> Context<'a> {
    Context {
        directory: folder.0.clone(),
        programs: Programs {
            onbeat: "onbeat".into(),
            measure: env!("CARGO_BIN_EXE_onbeat-measure").into(),
        },
        stop,
        say: &|_| (),
        progress: onbeat_experiments::Progress::default(),
        continues: false,
    }
}

/// The same; with `continues` it resumes with the kept cells. Its messages go to `say`.
pub fn conduct_as(
    folder: &Folder,
    continues: bool,
    say: &(dyn Fn(&str) + Sync),
    run: impl FnOnce(&Context) -> Result<Report, Error>,
) -> Report {
    let stop = AtomicBool::new(false);
    let context = Context { say, continues, ..context(folder, &stop) };
    let report = run(&context).unwrap();
    for line in [&report.measured, &report.good, &report.title] {
        assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
    }
    // Whatever was found can be shown and read back.
    assert!(report.text().contains(&report.title));
    let back = Report::from_json(&report.json()).unwrap();
    assert_eq!((&back.title, back.sections.len()), (&report.title, report.sections.len()));
    report
}

/// The table with these words in its caption.
pub fn table<'a>(report: &'a Report, words: &str) -> &'a Table {
    let tables = report.sections.iter().filter_map(|section| match section {
        Section::Table(table) => Some(table),
        _ => None,
    });
    let mut found = tables.filter(|table| table.caption.contains(words));
    let table = found.next().unwrap_or_else(|| panic!("a table on {words:?} in {}", report.text()));
    for row in &table.rows {
        assert_eq!(row.cells.len() + 1, table.columns.len(), "{row:?}");
    }
    table
}

/// A number of a table, by the names of its row and column.
pub fn number(table: &Table, row: &str, column: &str) -> f64 {
    let place = table.columns.iter().position(|it| it == column);
    let place = place.unwrap_or_else(|| panic!("a column {column:?} in {:?}", table.columns));
    let found = table.rows.iter().find(|it| it.name == row);
    let found = found.unwrap_or_else(|| panic!("a row {row:?} in {table:?}"));
    found.cells[place - 1]
        .parse()
        .unwrap_or_else(|_| panic!("a number, found {:?}", found.cells[place - 1]))
}

/// Conditions that the statistics of a row state of themselves.
pub fn assert_in_order(table: &Table) {
    for row in &table.rows {
        let at = |column: &str| number(table, &row.name, column);
        let (minimum, median, maximum) = (at("minimum"), at("median"), at("maximum"));
        assert!(minimum <= median && median <= maximum, "{row:?}");
        assert!(minimum <= at("average") && at("average") <= maximum, "{row:?}");
        assert!(at("SD") >= 0.0, "{row:?}");
    }
}
