//! Errors of a recording.

use std::io;

use thiserror::Error;

/// Reason for a recording that cannot be begun, or is not whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// File that cannot be written.
    #[error(
        "the recording cannot be written ({0}), expected a place for a new file: choose another path for --record"
    )]
    File(#[source] io::Error),
    /// Recordings of a flight recorder that failed.
    #[error("{failed} recordings failed, {kept} were kept: free some disk space, or record elsewhere")]
    NotKept {
        /// Number of failed recordings.
        failed: u64,
        /// Number of kept recordings.
        kept: u64,
    },
    /// Flight recorder that did not see each cycle, event and late cycle.
    #[error(
        "{missing} cycles{} were not seen: it was too slow; {kept} recordings were kept: record \
         fewer signals, or on a faster disk",
        events(*.marks)
    )]
    NotSeen {
        /// Number of kept recordings.
        kept: u64,
        /// Cycles that were not seen.
        missing: u64,
        /// Events and late cycles that were not seen.
        marks: u64,
    },
    /// Older files beyond the limit that were not removed. The recording has all else.
    #[error(
        "{} not removed, expected as many files as `--keep` at most: remove older files, and check \
         the rights of the folder",
        older(*.stay)
    )]
    NotRemoved {
        /// Number of files that stay.
        stay: u64,
    },
    /// File that others have moved, removed, replaced or cut.
    #[error(
        "{0} while it was written, and the recording is lost: record to a file that no other \
         program changes"
    )]
    Disturbed(&'static str),
    /// Threshold of a flight recorder for a value that is not recorded.
    #[error("{0}")]
    Trigger(String),
    /// Panic of the writer before it had opened the file.
    #[error("the recording's writer panicked")]
    Panicked,
    /// Recording that lacks cycles, or signals and axes of some.
    #[error(
        "{source}; {written} cycles are in it{}, {missing}{} are missing: free some disk space, or \
         record elsewhere",
        bare(*.without),
        events(*.marks)
    )]
    NotWhole {
        /// Reason.
        source: Incomplete,
        /// Cycles in it.
        written: u64,
        /// Cycles in it without signals and axes.
        without: u64,
        /// Cycles that are not in it.
        missing: u64,
        /// Events and late cycles that are not in it.
        marks: u64,
    },
}

/// Reason for which a recording lacks cycles.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Incomplete {
    /// Cycles came faster than the file took them.
    #[error("it was too slow")]
    TooSlow,
    /// The file took no more.
    #[error(transparent)]
    File(#[from] io::Error),
    /// The file neither took more nor refused it.
    #[error("it takes nothing any more")]
    Hangs,
    /// Panic of the writer.
    #[error("the recording's writer panicked")]
    Panicked,
}

fn older(stay: u64) -> String {
    if stay == 1 { "1 older file was".to_owned() } else { format!("{stay} older files were") }
}

fn events(marks: u64) -> String {
    if marks > 0 { format!(" and {marks} marks") } else { String::new() }
}

fn bare(without: u64) -> String {
    if without > 0 { format!(" ({without} without signals and axes)") } else { String::new() }
}
