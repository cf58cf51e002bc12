//! Formats of a recording's file: text, which everything here reads, or MCAP for other programs.

use std::io::{self, Write};
use std::path::Path;

use types::Value;

use crate::mark::Mark;
use crate::mcap::McapWriter;
use crate::recording::{Facts, Header, MAGIC, RecordingWriter};

/// Format of a recording's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// [`crate::recording`].
    #[default]
    Text,
    /// [`crate::mcap`].
    Mcap,
}

impl Format {
    /// Format of a file of this name: MCAP where it ends in `.mcap`.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let is_mcap = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("mcap"));
        if is_mcap { Self::Mcap } else { Self::Text }
    }
}

/// Writes a recording as it grows, in one of the formats.
pub enum FormatWriter<W: Write> {
    /// As text.
    Text(RecordingWriter<W>),
    /// As MCAP.
    Mcap(Box<McapWriter<W>>),
}

/// True if a file that begins so is a recording in one of the formats.
#[must_use]
pub fn is_recording(begin: &[u8]) -> bool {
    begin.starts_with(MAGIC.as_bytes()) || begin.starts_with(mcap::MAGIC)
}

impl<W: Write> FormatWriter<W> {
    /// Writes the head.
    ///
    /// # Errors
    /// Errors of [`RecordingWriter::begin`] and [`McapWriter::begin`].
    pub fn begin(format: Format, file: W, header: &Header) -> io::Result<Self> {
        Ok(match format {
            Format::Text => Self::Text(RecordingWriter::begin(file, header)?),
            Format::Mcap => Self::Mcap(Box::new(McapWriter::begin(file, header)?)),
        })
    }

    /// Writes one row with its process data, `None` where there is none.
    ///
    /// # Errors
    /// A row of another width; I/O errors of the writer.
    pub fn row_with(
        &mut self,
        values: &[i64],
        process_data: impl IntoIterator<Item = Option<Value>>,
    ) -> io::Result<()> {
        match self {
            Self::Text(writer) => writer.row_with(values, process_data),
            Self::Mcap(writer) => writer.row_with(values, process_data),
        }
    }

    /// Writes a mark.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn mark(&mut self, mark: &Mark) -> io::Result<()> {
        match self {
            Self::Text(writer) => writer.mark(mark),
            Self::Mcap(writer) => writer.mark(mark),
        }
    }

    /// Flushes the data written so far; false if that waits until there is more.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn flush(&mut self) -> io::Result<bool> {
        match self {
            Self::Text(writer) => writer.flush().map(|()| true),
            Self::Mcap(writer) => writer.flush(),
        }
    }

    /// Writes the facts known at the end, and returns the file.
    ///
    /// # Errors
    /// I/O errors of the writer.
    pub fn finish(self, facts: &Facts) -> io::Result<W> {
        match self {
            Self::Text(writer) => writer.finish(facts),
            Self::Mcap(writer) => writer.finish(facts),
        }
    }
}
