//! Measured time of cycles as numbers, from the record of one to the summary of a run: without I/O,
//! without a clock.
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | [`CycleRecord`]: duration of each phase of one cycle |
//! | [`recording`] | [`Recording`]: raw data in a file, with its conditions |
//! | [`lowest`] | the lowest per cents of samples |
//! | [`cycles`] | cycle records as a recording |
//! | `format` | formats of a recording's file (feature `mcap`) |
//! | [`mark`] | [`Mark`]: events and late cycles in addition to the rows |
//! | `mcap` | a recording as an MCAP file (feature `mcap`) |
//! | [`process_data`] | signals and axes of each cycle in the rows |
//! | [`statistics`] | [`Statistics`]: the one statistics type, constant memory, percentiles |
//! | [`summary`] | [`RunSummary`]: the statistics of a whole run, gathered record by record |
//! | [`conditions`] | [`RunConditions`]: the conditions under which a run was measured |
//! | [`table`] | [`RunTable`]: the statistics as text |
//!
//! Times are nanoseconds in `u64`, with the suffix `_ns` where a field leaves the process.
#![forbid(unsafe_code)]

pub mod conditions;
pub mod cycles;
#[cfg(feature = "mcap")]
pub mod format;
pub mod lowest;
pub mod mark;
#[cfg(feature = "mcap")]
pub mod mcap;
pub mod process_data;
pub mod record;
pub mod recording;
pub mod statistics;
pub mod summary;
pub mod table;

#[cfg(feature = "mcap")]
pub use crate::format::{Format, FormatWriter};
pub use crate::mark::Mark;
#[cfg(feature = "mcap")]
pub use crate::mcap::McapWriter;
pub use conditions::{RequestedAndGranted, RunConditions};
pub use record::{CycleRecord, Phase};
pub use recording::{Facts, Recording, RecordingReader, RecordingWriter};
pub use statistics::{Statistics, Summary};
pub use summary::{Occurrences, RunSummary};
pub use table::RunTable;
