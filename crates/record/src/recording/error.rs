//! Reasons for which a recording cannot be read.

use std::io;

use thiserror::Error;

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
