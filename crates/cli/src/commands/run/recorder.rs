//! Every measured beat in a file, written by the watch: the cycle itself never waits for a disk.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::Duration;

use machine::usage::Usage;
use serde_json::Value;
use timing::recording::{Facts, Header, RecordingWriter};
use timing::{CycleRecord, RunConditions, RunSummary, beats};

use crate::failure::Failure;
use crate::words::live_line::LiveLine;

/// A file to record into, made before the bus is touched: a wrong path costs nothing then.
pub(super) struct NewFile {
    path: PathBuf,
    file: File,
}

/// Makes the file.
pub(super) fn create(path: &Path) -> Result<NewFile, Failure> {
    let file = File::create(path).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    Ok(NewFile { path: path.to_owned(), file })
}

/// Writes beats as they come.
pub(super) struct Recorder {
    path: PathBuf,
    /// Until writing fails.
    writer: Option<RecordingWriter<BufWriter<File>>>,
    failure: Option<io::Error>,
    written: u64,
    /// Measured, but not in the file.
    unwritten: u64,
    begin: Option<Usage>,
}

impl Recorder {
    /// Writes the top, with the conditions of the run.
    pub(super) fn begin(new: NewFile, conditions: &RunConditions, period: Duration) -> Self {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let header = Header {
            what: beats::WHAT.to_owned(),
            columns: beats::COLUMNS.map(str::to_owned).to_vec(),
            facts: facts(conditions, period),
        };
        let begun = RecordingWriter::begin(BufWriter::with_capacity(BUFFER, new.file), &header);
        let (writer, failure) =
            begun.map_or_else(|error| (None, Some(error)), |writer| (Some(writer), None));
        Self { path: new.path, writer, failure, written: 0, unwritten: 0, begin: Usage::now().ok() }
    }

    /// Writes one beat.
    pub(super) fn record(&mut self, record: &CycleRecord, live: &mut LiveLine) {
        let outcome = self.writer.as_mut().map(|writer| writer.row(&beats::row(record)));
        match outcome {
            Some(Ok(())) => self.written += 1,
            Some(Err(error)) => {
                self.unwritten += 1;
                self.fail(error, live);
            }
            None => self.unwritten += 1,
        }
    }

    /// Hands what was written so far to the operating system: a run cut off keeps it.
    pub(super) fn flush(&mut self, live: &mut LiveLine) {
        if let Some(Err(error)) = self.writer.as_mut().map(RecordingWriter::flush) {
            self.fail(error, live);
        }
    }

    fn fail(&mut self, error: io::Error, live: &mut LiveLine) {
        live.say(&format!("{}: {error}; beats are not recorded any more", self.path.display()));
        self.writer = None;
        self.failure = Some(error);
    }

    /// Writes what is known only at the end, and says what came of it.
    pub(super) fn finish(self, summary: &RunSummary) -> Result<String, Failure> {
        let path = self.path.display().to_string();
        let mut failure = self.failure;
        if let Some(writer) = self.writer {
            failure = writer.finish(&end(summary, self.begin.as_ref())).err();
        }
        match failure {
            None => Ok(format!("{} beats recorded in {path}", self.written)),
            Some(error) => Err(Failure::new(format!(
                "{path}: {error}; {} beats are in it, {} are not: make room, or record elsewhere",
                self.written, self.unwritten
            ))),
        }
    }
}

/// The conditions by their names in `--json`, and the period.
fn facts(conditions: &RunConditions, period_ns: u64) -> Facts {
    let mut facts = Facts::new();
    facts.insert("period_ns".to_owned(), period_ns.into());
    if let Ok(Value::Object(conditions)) = serde_json::to_value(conditions) {
        facts.extend(conditions);
    }
    facts
}

/// What went wrong over the run, and what the machine did.
fn end(summary: &RunSummary, begin: Option<&Usage>) -> Facts {
    let counts = [
        ("cycles", summary.cycles()),
        ("dropped_records", summary.dropped_records.count),
        ("working_counter_errors", summary.working_counter_errors.count),
        ("lost_frames", summary.lost_frames.count),
        ("overruns", summary.overruns.count),
        ("skipped_releases", summary.skipped_releases.count),
    ];
    let mut facts: Facts =
        counts.map(|(name, count)| (name.to_owned(), count.into())).into_iter().collect();
    let over = begin.and_then(|begin| Some(Usage::now().ok()?.since(begin)));
    if let Some(Ok(usage)) = over.map(serde_json::to_value) {
        facts.insert("machine".to_owned(), usage);
    }
    facts
}

/// A look's worth of beats at 4 kHz.
const BUFFER: usize = 64 << 10;
