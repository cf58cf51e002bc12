//! File format of raw data: measured values row by row, with the conditions of the measurement.
//!
//! A text file. The first line is `# onbeat recording 1`, the second `# ` and the [`Header`] as JSON;
//! then one row a line, whole numbers separated by commas, one for each column; at the end, if the
//! measurement was finished, `# ` and the facts known only then (load, steal, counts) as one JSON
//! object. Rows are written as they come, so that an interrupted measurement keeps its rows: such a
//! recording reads as [`Recording::complete`]` == false`.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

/// Facts by name: conditions, settings, counts. Units are in the names, as `period_ns`.
pub type Facts = Map<String, Value>;

/// Head of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Kind of a row: `cycle`, `wakeup`, `bus`.
    pub what: String,
    /// Names of the columns, each with its unit, as `wakeup_latency_ns`.
    pub columns: Vec<String>,
    /// Facts known at the start.
    pub facts: Facts,
}

/// Writes a recording as it grows.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    file: W,
    columns: usize,
    line: String,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn begin(mut file: W, header: &Header) -> io::Result<Self> {
        writeln!(file, "{MAGIC}")?;
        writeln!(file, "# {}", serde_json::to_string(header)?)?;
        Ok(Self { file, columns: header.columns.len(), line: String::new() })
    }

    /// Writes one row.
    ///
    /// # Errors
    /// A row with more or fewer values than there are columns; I/O errors of the writer.
    pub fn row(&mut self, values: &[i64]) -> io::Result<()> {
        if values.len() != self.columns {
            let message = format!("a row of {} values, expected {}", values.len(), self.columns);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.line.clear();
        for value in values {
            if !self.line.is_empty() {
                self.line.push(',');
            }
            self.line.push_str(&value.to_string());
        }
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())
    }

    /// Flushes the buffer of the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Writes the facts known at the end, and returns the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn finish(mut self, facts: &Facts) -> io::Result<W> {
        writeln!(self.file, "# {}", serde_json::to_string(facts)?)?;
        self.file.flush()?;
        Ok(self.file)
    }
}

/// A recording in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Head of the recording.
    pub header: Header,
    /// Facts known at the end; empty if it was cut off.
    pub end: Facts,
    /// True if the recording was finished.
    pub complete: bool,
    values: Vec<i64>,
}

impl Recording {
    /// Reads a recording. A last line cut off in the middle is left out.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn read(file: impl BufRead) -> Result<Self, RecordingError> {
        let mut reader = RecordingReader::open(file)?;
        let mut values = Vec::new();
        while let Some(row) = reader.next_row()? {
            values.extend_from_slice(row);
        }
        let RecordingReader { header, end, .. } = reader;
        let complete = end.is_some();
        Ok(Self { header, end: end.unwrap_or_default(), complete, values })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / self.header.columns.len().max(1)
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Rows, each with one value per column.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[i64]> {
        self.values.chunks_exact(self.header.columns.len().max(1))
    }

    /// Values of one column; `None` if there is no column of that name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<impl ExactSizeIterator<Item = i64>> {
        let place = self.header.columns.iter().position(|column| column == name)?;
        Some(self.rows().map(move |row| row[place]))
    }
}

/// Reads a recording row by row, in constant memory, also while it is being written.
#[derive(Debug)]
pub struct RecordingReader<R> {
    file: R,
    header: Header,
    end: Option<Facts>,
    line: String,
    number: usize,
    row: Vec<i64>,
}

impl<R: BufRead> RecordingReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn open(file: R) -> Result<Self, RecordingError> {
        let header = Header { what: String::new(), columns: Vec::new(), facts: Facts::new() };
        let mut reader = Self { file, header, end: None, line: String::new(), number: 0, row: Vec::new() };
        reader.take_line()?;
        if reader.text() != MAGIC {
            return Err(reader.wrong(format!("`{MAGIC}`")));
        }
        reader.take_line()?;
        let header = reader.text().strip_prefix("# ").and_then(|json| serde_json::from_str(json).ok());
        reader.header = header.ok_or_else(|| reader.wrong("the header as JSON after `# `".into()))?;
        Ok(reader)
    }

    /// Head of the recording.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Facts known at the end, once they have been read: after the last row.
    #[must_use]
    pub const fn end(&self) -> Option<&Facts> {
        self.end.as_ref()
    }

    /// Next row, or `None` at the end. A last line cut off in the middle is left out.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn next_row(&mut self) -> Result<Option<&[i64]>, RecordingError> {
        while self.take_line()? {
            // A line cut off while being written has no line end; the lines before the last one have.
            let is_last = !self.line.ends_with('\n') || self.file.fill_buf()?.is_empty();
            if let Some(json) = self.text().strip_prefix("# ") {
                match serde_json::from_str(json) {
                    Ok(facts) => self.end = Some(facts),
                    Err(_) if is_last => {}
                    Err(_) => return Err(self.wrong("facts as JSON".into())),
                }
                continue;
            }
            // Half a number is a number, too: a row counts only with its line end.
            if self.end.is_none() && self.line.ends_with('\n') && self.parse_row() {
                return Ok(Some(&self.row));
            }
            if !is_last || self.end.is_some() {
                let columns = self.header.columns.len();
                return Err(self.wrong(format!("{columns} whole numbers parted by commas")));
            }
        }
        Ok(None)
    }

    fn parse_row(&mut self) -> bool {
        self.row.clear();
        let text = self.line.trim_end_matches(['\n', '\r']);
        for value in text.split(',') {
            match value.parse() {
                Ok(value) => self.row.push(value),
                Err(_) => return false,
            }
        }
        self.row.len() == self.header.columns.len()
    }

    /// Reads a line; `false` at the end of the file.
    fn take_line(&mut self) -> Result<bool, RecordingError> {
        self.line.clear();
        self.number += 1;
        Ok(self.file.read_line(&mut self.line)? > 0)
    }

    fn text(&self) -> &str {
        self.line.trim_end_matches(['\n', '\r'])
    }

    fn wrong(&self, expected: String) -> RecordingError {
        RecordingError::new(self.number, expected, self.text())
    }
}

/// A recording that cannot be read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// A line does not follow the format.
    #[error("line {line}: expected {expected}, found \"{found}\"")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// Expected content.
        expected: String,
        /// Beginning of the line.
        found: String,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
}

impl RecordingError {
    fn new(line: usize, expected: String, found: &str) -> Self {
        Self::Line { line, expected, found: found.chars().take(60).collect() }
    }
}

const MAGIC: &str = "# onbeat recording 1";

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let facts = [("period_ns".to_owned(), Value::from(1_000_000))].into_iter().collect();
        Header { what: "cycle".into(), columns: vec!["cycle".into(), "latency_ns".into()], facts }
    }

    fn written(finish: bool) -> String {
        let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
        writer.row(&[1, 2000]).unwrap();
        writer.row(&[2, -5]).unwrap();
        assert!(writer.row(&[1]).is_err());
        let end = [("steal_ns".to_owned(), Value::from(7))].into_iter().collect();
        let bytes = if finish { writer.finish(&end).unwrap() } else { writer.file };
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let recording = Recording::read(written(true).as_bytes()).unwrap();
        assert_eq!(recording.header, header());
        assert_eq!(recording.column("latency_ns").unwrap().collect::<Vec<_>>(), [2000, -5]);
        assert!(recording.column("none").is_none());
        assert!(recording.complete && recording.len() == 2 && recording.end["steal_ns"] == 7);
    }

    #[test]
    fn one_cut_off_anywhere_keeps_its_whole_rows() {
        let text = written(false);
        let top = text.find("\n1,").unwrap() + 1;
        for end in top..text.len() {
            let recording = Recording::read(&text.as_bytes()[..end]).unwrap();
            assert!(!recording.complete && recording.len() <= 2);
            let latencies = recording.column("latency_ns").unwrap();
            assert!(latencies.zip([2000, -5]).all(|(found, written)| found == written), "cut at {end}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = |text: &str| Recording::read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error("hello"), "line 1: expected `# onbeat recording 1`, found \"hello\"");
        let text = written(true).replace("1,2000", "1,2000,3");
        assert_eq!(error(&text), "line 3: expected 2 whole numbers parted by commas, found \"1,2000,3\"");
        let text = format!("{}3,4\n", written(true));
        assert!(error(&text).starts_with("line 6: "));
    }
}
