//! Files of a recorder: one with every cycle, parts of bounded size, or the cycles around triggers.
//! [`CycleWriter`] writes cycles to them.
//!
//! | module | contents |
//! |---|---|
//! | `flight` | [`FlightRecorder`]: the last seconds in memory, and in a file for a reason |
//! | `trigger` | [`Trigger`]: reasons; what a row or the caller has of them is a [`Cause`] |
//! | `parts` | [`RecordingParts`]: parts of bounded size |
//! | `files` | names of several files, a bounded number of them |

mod files;
mod flight;
mod parts;
mod trigger;

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use types::Value;

use crate::recording::{Facts, Header, check_columns};
use crate::{CycleRecord, Mark, RecordingWriter, cycles};

use files::BUFFER;
use flight::Flight;
use parts::PartsWriter;

pub use files::KeptFiles;
pub use flight::FlightRecorder;
pub use parts::RecordingParts;
pub use trigger::{Cause, Threshold, Trigger, TriggerError, UnknownValue};

/// Fact known at the end: events and late cycles that were dropped because the queue was full.
pub const DROPPED_MARKS: &str = "dropped_marks";

/// Writes cycles with their process data, and marks. `say` takes sentences for the user: files that
/// were kept, files that failed.
pub struct CycleWriter(Files);

enum Files {
    Whole(Box<RecordingWriter<BufWriter<File>>>),
    Parts(Box<PartsWriter>),
    Around(Box<Flight>),
}

impl CycleWriter {
    /// Every cycle in this file. What a regular file has is lost.
    ///
    /// # Errors
    /// Columns that no message has; I/O errors of the file.
    pub fn whole(file: File, header: &Header) -> io::Result<Self> {
        if file.metadata()?.is_file() {
            // A recording that is refused keeps the earlier one.
            check_columns(header)?;
            file.set_len(0)?;
        }
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self(Files::Whole(Box::new(RecordingWriter::begin(file, header)?))))
    }

    /// Every cycle, in parts that are named after `path`.
    #[must_use]
    pub fn parts(settings: RecordingParts, path: &Path, header: Header) -> Self {
        Self(Files::Parts(Box::new(PartsWriter::new(settings, path, header))))
    }

    /// The cycles around triggers, in files that are named after `path`.
    ///
    /// # Errors
    /// A threshold of a value that is not recorded.
    pub fn around(settings: &FlightRecorder, path: &Path, header: Header) -> Result<Self, UnknownValue> {
        Ok(Self(Files::Around(Box::new(Flight::new(settings, path, header)?))))
    }

    /// Has the cycles around this cause kept, if there are triggers.
    pub fn trigger(&mut self, cause: Cause) {
        if let Files::Around(flight) = &mut self.0 {
            flight.trigger(cause);
        }
    }

    /// Writes a cycle.
    ///
    /// # Errors
    /// I/O errors of a file of every cycle, or of a part.
    pub fn row(
        &mut self,
        record: &CycleRecord,
        values: impl Iterator<Item = Option<Value>>,
        say: &mut dyn FnMut(String),
    ) -> io::Result<()> {
        match &mut self.0 {
            Files::Whole(file) => file.row_with(&cycles::row(record), values),
            Files::Parts(parts) => {
                let written = parts.row(record, values);
                parts.take_note().into_iter().for_each(say);
                written
            }
            Files::Around(flight) => {
                flight.row(record, values).into_iter().for_each(say);
                Ok(())
            }
        }
    }

    /// Writes an event, or a late cycle with its causes.
    ///
    /// # Errors
    /// As [`CycleWriter::row`].
    pub fn mark(&mut self, mark: Mark, say: &mut dyn FnMut(String)) -> io::Result<()> {
        match &mut self.0 {
            Files::Whole(file) => file.mark(&mark),
            Files::Parts(parts) => parts.mark(&mark),
            Files::Around(flight) => {
                flight.mark(mark).into_iter().for_each(say);
                Ok(())
            }
        }
    }

    /// Number of rows that are in the file, of `all`.
    #[must_use]
    pub fn flushed_rows(&self, all: u64) -> u64 {
        match &self.0 {
            Files::Whole(file) => file.flushed_rows(),
            Files::Parts(parts) => parts.flushed_rows(),
            Files::Around(_) => all,
        }
    }

    /// Writes what has been in memory for a second to the file: a process that is killed leaves it.
    ///
    /// # Errors
    /// As [`CycleWriter::row`].
    pub fn flush_due(&mut self, say: &mut dyn FnMut(String)) -> io::Result<()> {
        match &mut self.0 {
            Files::Whole(file) if file.is_due() => file.flush(),
            Files::Parts(parts) if parts.is_due() => parts.flush(),
            Files::Around(flight) if flight.is_due() => {
                flight.flush().into_iter().for_each(say);
                Ok(())
            }
            Files::Whole(_) | Files::Parts(_) | Files::Around(_) => Ok(()),
        }
    }

    /// Ends the files with the facts known at the end. Without them a file of every cycle is left
    /// as if it was cut off.
    ///
    /// # Errors
    /// As [`CycleWriter::row`].
    pub fn finish(self, end: Option<&Facts>, say: &mut dyn FnMut(String)) -> io::Result<KeptFiles> {
        match (self.0, end) {
            (Files::Whole(file), Some(end)) => file.finish(end).map(|_| KeptFiles::default()),
            (Files::Whole(_), None) => Ok(KeptFiles::default()),
            (Files::Parts(mut parts), end) => {
                parts.end(end.unwrap_or(&Facts::new()))?;
                parts.take_note().into_iter().for_each(say);
                Ok(KeptFiles { kept: parts.files, failed: 0, stay: parts.stay })
            }
            (Files::Around(flight), _) => Ok(flight.finish(say)),
        }
    }
}

impl fmt::Debug for CycleWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CycleWriter").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_is_refused_keeps_the_earlier_one() {
        let path = std::env::temp_dir().join(format!("onbeat-refused-{}", std::process::id()));
        std::fs::write(&path, "an earlier one").unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        let mut columns = cycles::COLUMNS.map(str::to_owned).to_vec();
        columns.extend((0..20_000).map(|number| format!("signal:{number}")));
        let header = Header { what: cycles::WHAT.to_owned(), columns, facts: Facts::new() };
        let refused = CycleWriter::whole(file, &header).unwrap_err().to_string();
        assert!(refused.contains("columns"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), b"an earlier one");
        std::fs::remove_file(path).unwrap();
    }
}
