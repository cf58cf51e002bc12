//! Raw data of one cell: a recording with the machine's conditions, written as the cell is
//! measured.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use machine::conditions;
use machine::usage::Usage;
use record::RecordingWriter;
use record::recording::{Facts, Header};
use serde_json::{Value, json};

use crate::{Context, Error};

/// Recording that grows.
pub(crate) struct Raw {
    path: PathBuf,
    writer: RecordingWriter<BufWriter<File>>,
    row: Vec<i64>,
    rows: usize,
    flushed: Instant,
    begin: Option<Usage>,
}

impl Raw {
    /// Begins the recording of this name; the machine's conditions are added to its facts.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn begin(
        context: &Context,
        name: &str,
        what: &str,
        columns: &[&str],
        mut facts: Facts,
    ) -> Result<Self, Error> {
        facts.extend(conditions::facts(&conditions::read()));
        let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        let row = vec![0; columns.len()];
        let writer = context.record(name, &Header { what: what.into(), columns, facts })?;
        Ok(Self {
            path: context.path(name),
            writer,
            row,
            rows: 0,
            flushed: Instant::now(),
            begin: Usage::now().ok(),
        })
    }

    /// Appends rows, as columns of equal length in the order of the header.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn append(&mut self, columns: &[&[u64]]) -> Result<(), Error> {
        let rows = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        for place in 0..rows {
            for (cell, column) in self.row.iter_mut().zip(columns) {
                *cell = i64::try_from(column[place]).unwrap_or(i64::MAX);
            }
            self.writer.row(&self.row).map_err(|error| Error::file(&self.path, error))?;
        }
        self.rows += rows;
        // An experiment that is killed loses a second of its rows.
        if self.flushed.elapsed() > A_SECOND {
            self.writer.flush().map_err(|error| Error::file(&self.path, error))?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Finishes it with the use of the machine meanwhile, and `more`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn finish(self, mut more: Facts) -> Result<(), Error> {
        more.insert("rows".into(), self.rows.into());
        let over = self.begin.and_then(|begin| Some(Usage::now().ok()?.since(&begin)));
        if let Some(over) = over {
            let shares =
                json!({ "busy": over.whole.busy, "idle": over.whole.idle, "steal": over.whole.steal });
            more.insert("machine".into(), shares);
        }
        self.writer.finish(&more).map(drop).map_err(|error| Error::file(&self.path, error))
    }
}

/// Time between two writes to the file.
const A_SECOND: Duration = Duration::from_secs(1);

/// Facts from pairs.
pub(crate) fn facts<const N: usize>(pairs: [(&str, Value); N]) -> Facts {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
