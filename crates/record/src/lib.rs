//! Measured time of cycles as numbers, from the record of one to the summary of a run: without I/O,
//! without a clock.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | [`CycleRecord`]: duration of each phase of one cycle |
//! | `recording` | `Recording`: raw data in an MCAP file, with its conditions (feature `recording`) |
//! | [`lowest`] | the lowest per cents of samples |
//! | `cycles` | cycle records as a recording (feature `recording`) |
//! | [`mark`] | [`Mark`]: events and late cycles in addition to the rows |
//! | [`process_data`] | signals and axes of each cycle in the rows |
//! | [`statistics`] | [`Statistics`]: the one statistics type, constant memory, percentiles |
//! | [`summary`] | [`RunSummary`]: the statistics of a whole run, gathered record by record |
//! | [`conditions`] | [`RunConditions`]: the conditions under which a run was measured |
//! | [`table`] | [`RunTable`]: the statistics as text |
//!
//! Times are nanoseconds in `u64`, with the suffix `_ns` where a field leaves the process.
#![forbid(unsafe_code)]

pub mod conditions;
#[cfg(feature = "recording")]
pub mod cycles;
pub mod lowest;
pub mod mark;
pub mod process_data;
pub mod record;
#[cfg(feature = "recording")]
pub mod recording;
pub mod statistics;
pub mod summary;
pub mod table;

pub use crate::mark::Mark;
pub use conditions::{RequestedAndGranted, RunConditions};
pub use record::{CycleRecord, Phase};
#[cfg(feature = "recording")]
pub use recording::{Facts, Recording, RecordingReader, RecordingWriter};
pub use statistics::{Statistics, Summary};
pub use summary::{Occurrences, RunSummary};
pub use table::RunTable;
