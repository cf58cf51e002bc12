//! `onbeat export`: a recording for other programs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use record::{Mark, RecordingReader, RecordingWriter};
use types::Value;

use crate::failure::Failure;
use crate::output;

/// Reads a recording of `run --record` and writes it as CSV: a line of names, then a line for each
/// cycle. Or writes it as MCAP, with an index, also if the recording was cut off.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The recording
    #[arg(value_name = "RECORDING")]
    recording: PathBuf,

    /// The new file: CSV if it ends in .csv, MCAP if it ends in .mcap
    #[arg(value_name = "FILE.csv|FILE.mcap")]
    to: PathBuf,

    /// Write it even if there is a file of that name
    #[arg(long)]
    force: bool,
}

impl Export {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let (from, to) = (self.recording.display(), self.to.display());
        let as_mcap = match self.to.extension().and_then(|it| it.to_str()) {
            Some("mcap") => true,
            Some("csv") => false,
            _ => return Err(Failure::new(format!("{to}: expected a name that ends in .csv or .mcap"))),
        };
        let read = |error: &dyn std::fmt::Display| Failure::new(format!("{from}: {error}"));
        if std::fs::metadata(&self.recording).is_ok_and(|it| !it.is_file()) {
            return Err(read(&"not a regular file, expected a recording"));
        }
        let file = File::open(&self.recording).map_err(|error| read(&error))?;
        let mut reader = RecordingReader::open(BufReader::new(file)).map_err(|error| read(&error))?;
        if !self.force && self.to.exists() {
            return Err(Failure::new(format!("{to}: the file exists, expected none; --force replaces it")));
        }
        // Whole or not at all: the recording may be the file that is replaced.
        let mut part = self.to.clone().into_os_string();
        part.push(format!(".part-{}", std::process::id()));
        let part = PathBuf::from(part);
        let file = create(&part)?;
        let written = match as_mcap {
            true => mcap(&mut reader, file),
            false => marks(&self.recording).and_then(|marks| csv(&mut reader, file, marks)),
        };
        let written = written.and_then(|rows| Ok(std::fs::rename(&part, &self.to).map(|()| rows)?));
        let rows = written.map_err(|error| {
            let _ = std::fs::remove_file(&part);
            match error {
                Stopped::Read(error) => read(&error),
                Stopped::Written(error) => Failure::new(format!("{to}: {error}; it is not written")),
            }
        })?;
        let cut = if reader.end().is_none() { "; the recording was cut off" } else { "" };
        output::print(format!("{rows} rows in {to}{cut}\n"))
    }
}

fn create(path: &Path) -> Result<File, Failure> {
    File::options().write(true).create_new(true).open(path).map_err(|error| {
        Failure::new(format!("{}: {error}, expected a place for a new file", path.display()))
    })
}

/// Side that ended it.
enum Stopped {
    Read(record::recording::RecordingError),
    Written(io::Error),
}

impl From<record::recording::RecordingError> for Stopped {
    fn from(error: record::recording::RecordingError) -> Self {
        Self::Read(error)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Written(error)
    }
}

type Reader = RecordingReader<BufReader<File>>;

/// Rows written.
fn mcap(reader: &mut Reader, file: File) -> Result<u64, Stopped> {
    let mut writer = RecordingWriter::begin(BufWriter::new(file), reader.header())?;
    let (mut rows, mut row) = (0, Vec::new());
    while let Some(values) = reader.next_row()? {
        values.clone_into(&mut row);
        let process_data = reader.process_data().iter().zip(row.len()..);
        let value = |(&value, column): (&f64, usize)| match exact(reader, value, column) {
            Some(exact) => Some(u64::try_from(exact).map_or(Value::Signed(exact as i64), Value::Unsigned)),
            None => (!value.is_nan()).then_some(Value::Real(value)),
        };
        writer.row_with(&row, process_data.map(value))?;
        reader.take_marks().iter().try_for_each(|mark| writer.mark(mark))?;
        rows += 1;
    }
    reader.take_marks().iter().try_for_each(|mark| writer.mark(mark))?;
    match reader.end() {
        Some(end) => writer.finish(end)?,
        None => writer.finish_cut_off()?,
    };
    Ok(rows)
}

/// Whole number of a column of process data, if it is beyond the exact ones of `f64`.
fn exact(reader: &Reader, value: f64, column: usize) -> Option<i128> {
    let beyond = value.abs() >= 9_007_199_254_740_992.0;
    reader.exact(column).filter(|_| beyond)
}

/// Sentences on events and on late cycles, by cycle.
type Marks = BTreeMap<i64, [String; 2]>;

/// Events and late cycles of a recording: a mark may follow the row of its cycle.
fn marks(path: &Path) -> Result<Marks, Stopped> {
    let mut reader = RecordingReader::open(BufReader::new(File::open(path)?))?;
    while reader.next_row()?.is_some() {}
    let mut marks = Marks::new();
    for mark in reader.take_marks() {
        let texts = marks.entry(i64::try_from(mark.cycle()).unwrap_or(i64::MAX)).or_default();
        let text = &mut texts[usize::from(matches!(mark, Mark::Late { .. }))];
        *text = [text.as_str(), mark.sentence()].join(if text.is_empty() { "" } else { "; " });
    }
    Ok(marks)
}

/// Rows written, each with the events of its cycle and its causes if it was late. Marks of a cycle
/// without a row are in the next row, marks behind the last row in that one.
fn csv(reader: &mut Reader, file: File, mut marks: Marks) -> Result<u64, Stopped> {
    let mut file = BufWriter::new(file);
    let columns = &reader.header().columns;
    let cycle = columns.iter().position(|name| name == "cycle");
    let names: Vec<String> =
        columns.iter().map(String::as_str).chain(["events", "late"]).map(quoted).collect();
    writeln!(file, "{}", names.join(","))?;
    let without_row = (",".repeat(columns.len().saturating_sub(1)), Default::default());
    let (mut rows, mut last) = (0, None);
    while let Some(values) = reader.next_row()? {
        let number = cycle.map(|place| values[place]);
        let mut texts = <[String; 2]>::default();
        while let Some(of_earlier) = marks.first_entry().filter(|it| Some(*it.key()) < number) {
            let (of, more) = of_earlier.remove_entry();
            add(&mut texts, more, Some(of));
        }
        add(&mut texts, number.and_then(|number| marks.remove(&number)).unwrap_or_default(), None);
        let mut line = values.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let first = values.len();
        for (&value, column) in reader.process_data().iter().zip(first..) {
            line.push(',');
            match exact(reader, value, column) {
                Some(exact) => line.push_str(&exact.to_string()),
                None if value.is_nan() => {}
                None => line.push_str(&value.to_string()),
            }
        }
        if let Some(before) = last.replace((line, texts)) {
            write_row(&mut file, &before)?;
        }
        rows += 1;
    }
    if last.is_some() || !marks.is_empty() {
        let mut last = last.unwrap_or(without_row);
        marks.into_iter().for_each(|(of, more)| add(&mut last.1, more, Some(of)));
        write_row(&mut file, &last)?;
    }
    file.flush()?;
    Ok(rows)
}

/// Adds sentences on a cycle, with its number if it is another one than that of the row.
fn add(texts: &mut [String; 2], more: [String; 2], of: Option<i64>) {
    for (text, more) in texts.iter_mut().zip(more).filter(|(_, more)| !more.is_empty()) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        if let Some(cycle) = of {
            text.push_str(&format!("cycle {cycle}: "));
        }
        text.push_str(&more);
    }
}

fn write_row(file: &mut impl Write, (line, texts): &(String, [String; 2])) -> io::Result<()> {
    let [events, late] = texts.each_ref().map(|text| quoted(text));
    writeln!(file, "{line},{events},{late}")
}

/// A field as RFC 4180 has it.
fn quoted(name: &str) -> String {
    match name.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_owned(),
    }
}
