//! File format of raw data: measured values row by row, with the conditions of the measurement.
//!
//! A text file. The first line is `# onbeat recording 1`, the second `# ` and the [`Header`] as
//! JSON. Then follows one line per row: whole numbers separated by commas, one for each column,
//! then the columns of [process data](crate::process_data), which may be any numbers, or empty. A
//! finished measurement ends with `# ` and the facts known only then (load, steal, counts) as one
//! JSON object. [`Mark`]s are lines between the rows: `# ` and a JSON object with `mark` first.
//! Rows are written immediately, so that an interrupted measurement keeps its rows: such a
//! recording reads as [`Recording::complete`]` == false`.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use serde_json::Map;
use thiserror::Error;
use types::Value;

use crate::mark::Mark;
use crate::process_data::{self, FIELD};

/// Facts by name: conditions, settings, counts. Units are in the names, as `period_ns`.
pub type Facts = Map<String, serde_json::Value>;

/// Head of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Kind of a row: `cycle`, `wakeup`, `bus`.
    pub what: String,
    /// Names of the columns, each with its unit, as `wakeup_latency_ns`. Columns with a colon, as
    /// `signal:pressure`, are process data, and come after at least one other.
    pub columns: Vec<String>,
    /// Facts known at the start.
    pub facts: Facts,
}

/// Writes a recording as it grows.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    file: W,
    /// Columns of whole numbers, and of process data behind them.
    columns: (usize, usize),
    line: String,
}

impl<W: Write> RecordingWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Columns of process data before others; I/O errors of the writer.
    pub fn begin(mut file: W, header: &Header) -> io::Result<Self> {
        let whole =
            process_data::whole_columns(&header.columns).ok_or_else(|| wrong_row(ORDER.to_owned()))?;
        writeln!(file, "{MAGIC}")?;
        writeln!(file, "# {}", serde_json::to_string(header)?)?;
        Ok(Self { file, columns: (whole, header.columns.len() - whole), line: String::new() })
    }

    /// Writes one row of a recording without process data.
    ///
    /// # Errors
    /// A row with more or fewer values than there are columns; I/O errors of the writer.
    pub fn row(&mut self, values: &[i64]) -> io::Result<()> {
        self.row_with(values, [])
    }

    /// Writes one row with its process data, `None` where there is none.
    ///
    /// # Errors
    /// As [`RecordingWriter::row`].
    pub fn row_with(
        &mut self,
        values: &[i64],
        process_data: impl IntoIterator<Item = Option<Value>>,
    ) -> io::Result<()> {
        self.line.clear();
        for value in values {
            if !self.line.is_empty() {
                self.line.push(',');
            }
            self.line.push_str(&value.to_string());
        }
        let mut found = (values.len(), 0);
        for value in process_data {
            if found.0 + found.1 > 0 {
                self.line.push(',');
            }
            process_data::write(&mut self.line, value);
            found.1 += 1;
        }
        if found != self.columns {
            let message = format!(
                "a row of {} + {} values, expected {} + {}",
                found.0, found.1, self.columns.0, self.columns.1
            );
            return Err(wrong_row(message));
        }
        self.line.push('\n');
        self.file.write_all(self.line.as_bytes())
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        writeln!(self.file, "# {}", serde_json::to_string(mark)?)
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
    /// Events and late cycles, in the order of the file.
    pub marks: Vec<Mark>,
    values: Vec<i64>,
    process_data: Vec<f64>,
    /// Columns of whole numbers; process data follows them.
    whole: usize,
}

impl Recording {
    /// Reads a recording. A last line cut off in the middle is left out.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn read(file: impl BufRead) -> Result<Self, RecordingError> {
        let mut reader = RecordingReader::open(file)?;
        let (mut values, mut process_data) = (Vec::new(), Vec::new());
        while let Some(row) = reader.next_row()? {
            values.extend_from_slice(row);
            process_data.extend_from_slice(reader.process_data());
        }
        let RecordingReader { header, end, whole, marks, .. } = reader;
        let complete = end.is_some();
        Ok(Self { header, end: end.unwrap_or_default(), complete, marks, values, process_data, whole })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() / self.whole.max(1)
    }

    /// True if there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Rows, each with one value per column, without their process data.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[i64]> {
        self.values.chunks_exact(self.whole.max(1))
    }

    /// Process data of the rows, NaN where there is none.
    pub fn process_data_rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        let width = self.header.columns.len() - self.whole;
        (0..self.len()).map(move |row| &self.process_data[row * width..(row + 1) * width])
    }

    /// Values of one column of whole numbers; `None` if there is no such column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<impl ExactSizeIterator<Item = i64>> {
        let place = self.header.columns[..self.whole].iter().position(|column| column == name)?;
        Some(self.rows().map(move |row| row[place]))
    }

    /// Values of one column of process data, NaN where there is none; `None` if there is no such
    /// column. Whole numbers beyond 2^53 are rounded; the file has them as they are.
    #[must_use]
    pub fn process_data(&self, name: &str) -> Option<impl ExactSizeIterator<Item = f64>> {
        let place = self.header.columns[self.whole..].iter().position(|column| column == name)?;
        Some(self.process_data_rows().map(move |row| row[place]))
    }
}

/// Reads a recording row by row, in constant memory but for its marks, also while it is being
/// written.
#[derive(Debug)]
pub struct RecordingReader<R> {
    file: R,
    header: Header,
    end: Option<Facts>,
    marks: Vec<Mark>,
    line: String,
    number: usize,
    row: Vec<i64>,
    process_data: Vec<f64>,
    whole: usize,
}

impl<R: BufRead> RecordingReader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn open(file: R) -> Result<Self, RecordingError> {
        let header = Header { what: String::new(), columns: Vec::new(), facts: Facts::new() };
        let (line, row, process_data) = (String::new(), Vec::new(), Vec::new());
        let (end, marks) = (None, Vec::new());
        let mut reader = Self { file, header, end, marks, line, number: 0, row, process_data, whole: 0 };
        reader.take_line()?;
        if reader.text() != MAGIC {
            return Err(reader.wrong(format!("`{MAGIC}`")));
        }
        reader.take_line()?;
        let header = reader.text().strip_prefix("# ").and_then(|json| serde_json::from_str(json).ok());
        reader.header = header.ok_or_else(|| reader.wrong("the header as JSON after `# `".into()))?;
        let whole = process_data::whole_columns(&reader.header.columns);
        reader.whole = whole.ok_or_else(|| reader.wrong(ORDER.into()))?;
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

    /// Takes the marks that were read since they were taken last.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    /// Process data of the row that was read last, NaN where there is none.
    #[must_use]
    pub fn process_data(&self) -> &[f64] {
        &self.process_data
    }

    /// Field `column` of the row that was read last, as a whole number: exact, where
    /// [`process_data`](Self::process_data) rounds beyond 2^53. `None` if it is empty or none.
    #[must_use]
    pub fn exact(&self, column: usize) -> Option<u64> {
        self.text().split(',').nth(column)?.parse().ok()
    }

    /// Next row without its process data, or `None` at the end. A last line cut off in the middle
    /// is left out.
    ///
    /// # Errors
    /// The line that does not follow the format; I/O errors of the reader.
    pub fn next_row(&mut self) -> Result<Option<&[i64]>, RecordingError> {
        while self.take_line()? {
            // A line cut off while being written has no line end; the lines before the last one
            // have.
            let is_last = !self.line.ends_with('\n') || self.file.fill_buf()?.is_empty();
            if let Some(json) = self.text().strip_prefix("# ") {
                if let Some(mark) = Mark::of_line(json) {
                    self.marks.push(mark);
                    continue;
                }
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
                let (whole, all) = (self.whole, self.header.columns.len());
                let mut expected = format!("{whole} whole numbers parted by commas");
                if all > whole {
                    expected = format!("{expected}, and behind them {} {FIELD}", all - whole);
                }
                return Err(self.wrong(expected));
            }
        }
        Ok(None)
    }

    fn parse_row(&mut self) -> bool {
        self.row.clear();
        self.process_data.clear();
        let text = self.line.trim_end_matches(['\n', '\r']);
        for field in text.split(',') {
            if self.row.len() < self.whole {
                let Ok(value) = field.parse() else { return false };
                self.row.push(value);
            } else {
                let Some(value) = process_data::read(field) else { return false };
                self.process_data.push(value);
            }
        }
        self.row.len() + self.process_data.len() == self.header.columns.len()
    }

    /// Reads a line; `false` at the end of the file.
    fn take_line(&mut self) -> Result<bool, RecordingError> {
        let mut line = std::mem::take(&mut self.line).into_bytes();
        line.clear();
        self.number += 1;
        let length = self.file.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
        if length as u64 == LONGEST_LINE && !line.ends_with(b"\n") {
            return Err(self.wrong(format!("a line of {LONGEST_LINE} bytes at most")));
        }
        // Invalid UTF-8 matches none of the expected lines.
        self.line = String::from_utf8(line)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        Ok(length > 0)
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
#[non_exhaustive]
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

fn wrong_row(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

const ORDER: &str =
    "columns of process data (with a colon) behind at least one other, and none behind them";

/// First line of a recording.
pub const MAGIC: &str = "# onbeat recording 1";

/// Bytes of a line: of the header of a thousand axes, and far more than that.
const LONGEST_LINE: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let facts = [("period_ns".to_owned(), serde_json::Value::from(1_000_000))].into_iter().collect();
        Header { what: "cycle".into(), columns: vec!["cycle".into(), "latency_ns".into()], facts }
    }

    fn written(finish: bool) -> String {
        let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
        writer.row(&[1, 2000]).unwrap();
        writer.row(&[2, -5]).unwrap();
        assert!(writer.row(&[1]).is_err());
        let end = [("steal_ns".to_owned(), serde_json::Value::from(7))].into_iter().collect();
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

    fn with_process_data(rows: &[(i64, [Option<Value>; 2])]) -> String {
        let columns = ["cycle", "signal:force", "axis:x.position"].map(str::to_owned).to_vec();
        let mut writer = RecordingWriter::begin(Vec::new(), &Header { columns, ..header() }).unwrap();
        rows.iter().for_each(|(cycle, values)| writer.row_with(&[*cycle], *values).unwrap());
        assert!(writer.row(&[1]).is_err() && writer.row_with(&[], [None, None]).is_err());
        String::from_utf8(writer.finish(&Facts::new()).unwrap()).unwrap()
    }

    // feature(measure): recordings with signals and axes, cycle by cycle
    #[test]
    fn process_data_comes_back_as_it_was_and_an_empty_field_is_none() {
        let real = |value| Some(Value::Real(value));
        let text = with_process_data(&[
            (1, [Some(Value::Bool(true)), real(0.1)]),
            (2, [None, real(-1e-300)]),
            (3, [Some(Value::Unsigned(u64::MAX)), real(f64::NAN)]),
            (4, [Some(Value::Signed(-5)), None]),
        ]);
        assert!(text.contains("\n1,1,0.1\n2,,-1e-300\n3,18446744073709551615,NaN\n4,-5,\n"), "{text}");
        let recording = Recording::read(text.as_bytes()).unwrap();
        assert_eq!(recording.column("cycle").unwrap().collect::<Vec<_>>(), [1, 2, 3, 4]);
        let bits = |name| recording.process_data(name).unwrap().map(f64::to_bits).collect::<Vec<_>>();
        let expected = |values: [f64; 4]| values.map(f64::to_bits).to_vec();
        assert_eq!(bits("signal:force"), expected([1.0, f64::NAN, u64::MAX as f64, -5.0]));
        assert_eq!(bits("axis:x.position"), expected([0.1, -1e-300, f64::NAN, f64::NAN]));
        assert!(recording.column("signal:force").is_none() && recording.process_data("cycle").is_none());
        let cut = Recording::read(&text.as_bytes()[..text.find("\n2,").unwrap() + 4]).unwrap();
        assert_eq!((cut.len(), cut.process_data_rows().len()), (1, 1));
    }

    #[test]
    fn marks_stand_between_rows_and_come_back_as_they_were() {
        let marks = [
            Mark::Late { cycle: 1, at_ns: 5, late_ns: 9, sentence: "by \"x\",\nand more".to_owned() },
            Mark::Event {
                cycle: 2,
                at_ns: 6,
                severity: "error".to_owned(),
                sentence: "drive-1 is lost".to_owned(),
            },
        ];
        let mut writer = RecordingWriter::begin(Vec::new(), &header()).unwrap();
        writer.mark(&marks[0]).unwrap();
        writer.row(&[1, 2000]).unwrap();
        writer.mark(&marks[1]).unwrap();
        writer.row(&[2, 7]).unwrap();
        let text = String::from_utf8(writer.finish(&Facts::new()).unwrap()).unwrap();
        let recording = Recording::read(text.as_bytes()).unwrap();
        assert_eq!((&recording.marks[..], recording.len(), recording.complete), (&marks[..], 2, true));
        // A recording cut off in a mark keeps the data before it.
        let cut = Recording::read(&text.as_bytes()[..text.find("drive-1").unwrap()]).unwrap();
        assert_eq!((&cut.marks[..], cut.len(), cut.complete), (&marks[..1], 1, false));
    }

    // feature(measure): damaged recordings
    #[test]
    fn wrong_process_data_is_named() {
        let error = |text: &str| Recording::read(text.as_bytes()).unwrap_err().to_string();
        let text = with_process_data(&[(1, [None, None]), (2, [None, None])]);
        for wrong in ["1,x,", "1,", "1,,,", ",,"] {
            let sentence = error(&text.replace("\n1,,\n", &format!("\n{wrong}\n")));
            let expected = "line 3: expected 1 whole numbers parted by commas, and behind them 2 numbers, each whole, \
                            with a point, or empty, found";
            assert_eq!(sentence, format!("{expected} \"{wrong}\""));
        }
        let order = error(&text.replace(r#""cycle","signal:force""#, r#""signal:force","cycle""#));
        assert!(
            order.starts_with("line 2: expected columns of process data (with a colon) behind"),
            "{order}"
        );
        assert!(
            RecordingWriter::begin(Vec::new(), &Header { columns: vec!["a:b".into()], ..header() })
                .is_err()
        );
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
