//! Recordings: measured values row by row, with the conditions of the measurement, in an MCAP file
//! that Foxglove, PlotJuggler and the tools of ROS 2 read too.
//!
//! | topic | message | one for each |
//! |---|---|---|
//! | `/cycle` | `onbeat/msg/Cycle` | row of a recording of cycles |
//! | `/KIND` | `onbeat/msg/Row` | row of a recording of another [kind](Header::what) |
//! | `/axes/NAME` | `onbeat/msg/Axis` | row with process data |
//! | `/signals/NAME` | `onbeat/msg/Signal` | row with a value of the signal, or with its force |
//! | `/events` | `onbeat/msg/Event` | event |
//! | `/late` | `onbeat/msg/Late` | late cycle that was explained |
//!
//! * `Cycle`: `int64` of each column of whole numbers; `wakeup_latency_ns`, `period_ns` (start to
//!   start, 0 of the first); `signals_forced`, -1 where process data was dropped. `Row`: its
//!   columns.
//! * `Axis`: `float64` of each of [`OF_AXIS`](crate::process_data::OF_AXIS), NaN where there is
//!   none; `int64` of each of [`STATE_OF_AXIS`](crate::process_data::STATE_OF_AXIS), -1 where there
//!   is none.
//! * `Signal`: `float64 value`, `bool forced`; the channel's metadata has its unit. Integers of 64
//!   bits have `SignalUnsigned64` and `SignalSigned64`, with `exact` in addition.
//! * `Event`: `int64 cycle`, `string severity`, `string sentence`.
//! * `Late`: `int64 cycle`, `int64 late_ns`, `string sentence` with the causes.
//!
//! Messages are CDR, their schemas `ros2msg`. The messages of a row follow its first one. Log and
//! publish time are the row's release on CLOCK_REALTIME, where the facts have [`REALTIME_OFFSET`],
//! else on CLOCK_MONOTONIC. Facts are metadata: `onbeat` at the beginning, `onbeat_end` at the end;
//! `onbeat_rows` has the kind and the columns of the rows. Chunks are not compressed. The first has
//! schemas and channels and is in the file at once. Chunks of rows are finished after a sixteenth
//! of a second, after twice that, and so on, then each second, and behind a whole row: a file that
//! was cut off, or ends in zeros after a power loss, holds the rows before, and reads as
//! [`Recording::complete`]` == false`. Other damage is an error with its place.

mod facts;
mod file_records;
mod layout;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::io::{self, BufRead, Read, Seek};

use serde_json::Map;
use thiserror::Error;

use crate::mark::Mark;
use crate::process_data::is_process_data;

pub use reader::RecordingReader;
pub use writer::RecordingWriter;
pub(crate) use writer::check_columns;

/// Facts by name: conditions, settings, counts. Units are in the names, as `period_ns`.
pub type Facts = Map<String, serde_json::Value>;

/// Head of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Kind of a row: `cycle`, `wakeup`, `bus`.
    pub what: String,
    /// Names of the columns, each with its unit, as `wakeup_latency_ns`. Columns with a colon, as
    /// `signal:pressure`, are process data, and come after at least one other.
    pub columns: Vec<String>,
    /// Facts known at the start.
    pub facts: Facts,
}

/// Fact of a recording: CLOCK_REALTIME less CLOCK_MONOTONIC at its beginning, ns.
pub const REALTIME_OFFSET: &str = "realtime_offset_ns";

/// True if a file that begins so is a recording: an MCAP file with a header that names Onbeat as
/// its library. 64 bytes are enough.
#[must_use]
pub fn is_recording(begin: &[u8]) -> bool {
    let header =
        begin.strip_prefix(mcap::MAGIC).and_then(|it| it.strip_prefix(&[mcap::records::op::HEADER]));
    // The length of the record, then that of the profile.
    let Some((length, rest)) = header.and_then(|it| it.get(8..)).and_then(<[u8]>::split_first_chunk) else {
        return false;
    };
    let profile = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let library = rest.get(profile..).and_then(|it| it.get(4..));
    library.is_some_and(|it| it.starts_with(b"onbeat "))
}

/// Bytes that show whether a file is a recording.
pub const HEAD: usize = 64;

/// Checks that a file to write has nothing but a recording of Onbeat, or is empty, and goes back to
/// its beginning. True of a recording.
///
/// # Errors
/// It is another file, or cannot be read.
pub fn check_replaceable<F: Read + Seek>(mut file: F) -> io::Result<bool> {
    let mut begin = [0; HEAD];
    let length = file.read(&mut begin)?;
    if length > 0 && !is_recording(&begin[..length]) {
        return Err(io::Error::other("there is a file that is no recording"));
    }
    file.seek(io::SeekFrom::Start(0))?;
    Ok(length > 0)
}

/// True if a file that begins so is a text recording of an earlier version, which is not read.
#[must_use]
pub fn is_text_recording(begin: &[u8]) -> bool {
    begin.starts_with(b"# onbeat recording")
}

/// Encapsulation header of plain CDR. Members of eight bytes stand first, and so are aligned behind
/// it.
const CDR_LITTLE_ENDIAN: [u8; 4] = [0, 1, 0, 0];

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
    /// Reads a recording. A row that was cut off is left out.
    ///
    /// # Errors
    /// A file that is no recording, or a damaged one; I/O errors of the reader.
    pub fn read(file: impl BufRead) -> Result<Self, RecordingError> {
        let mut reader = RecordingReader::open(file)?;
        let (mut values, mut process_data) = (Vec::new(), Vec::new());
        while let Some(row) = reader.next_row()? {
            values.extend_from_slice(row);
            process_data.extend_from_slice(reader.process_data());
        }
        let (marks, end) = (reader.take_marks(), reader.end().cloned());
        let header = reader.header().clone();
        let whole =
            header.columns.iter().position(|it| is_process_data(it)).unwrap_or(header.columns.len());
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
    /// column. Whole numbers beyond 2^53 are rounded; [`RecordingReader::exact`] has them as they
    /// are.
    #[must_use]
    pub fn process_data(&self, name: &str) -> Option<impl ExactSizeIterator<Item = f64>> {
        let place = self.header.columns[self.whole..].iter().position(|column| column == name)?;
        Some(self.process_data_rows().map(move |row| row[place]))
    }
}

/// A recording that cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file is of another kind.
    #[error("expected a recording, an MCAP file of `onbeat run --record`; found \"{found}\"")]
    NoRecording {
        /// Beginning of the file.
        found: String,
    },
    /// The file is a text recording of an earlier version.
    #[error(
        "found a text recording of an earlier Onbeat, expected MCAP: record again, or export it as MCAP with that \
         version and open the export with another program"
    )]
    Text,
    /// Another program wrote the MCAP file.
    #[error(
        "found an MCAP file without the metadata `onbeat_rows`, expected a recording of `onbeat run --record`: \
         open it with the program that wrote it"
    )]
    Foreign,
    /// The file ends before its rows.
    #[error(
        "the file ends before its first row, expected a recording of `onbeat run --record`: record again"
    )]
    NoRows,
    /// The recording has another content than the reader needs.
    #[error("expected {expected}, found \"{found}\"")]
    Unexpected {
        /// Expected content.
        expected: String,
        /// Beginning of the content found.
        found: String,
    },
    /// The file is damaged.
    #[error("the file is damaged at byte {at}: expected {expected}; `mcap recover` may save the rest")]
    Damaged {
        /// Place in the file.
        at: u64,
        /// Expected content.
        expected: &'static str,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] io::Error),
}

impl RecordingError {
    /// Another content than the reader needs; of the content found the beginning is kept.
    pub fn unexpected(expected: &str, found: &str) -> Self {
        Self::Unexpected { expected: expected.to_owned(), found: found.chars().take(60).collect() }
    }
}
