//! Cycle records, statistics and tables of time: pure numbers.
//!
//! | module | what it holds |
//! |---|---|
//! | [`analysis`] | whether tasks meet their deadlines |
//! | [`bus`] | frames, round trips and latencies of a bus |
//! | [`record`] | [`CycleRecord`]: what one beat of the cycle took, phase by phase |
//! | [`recording`] | [`Recording`]: raw data in a file, with its conditions |
//! | [`lowest`] | the lowest so many per cent of samples |
//! | [`beats`] | cycle records as a recording |
//! | [`statistics`] | [`Statistics`]: the one statistics type, constant memory, percentiles |
//! | [`summary`] | [`RunSummary`]: the statistics of a whole run, gathered record by record |
//! | [`conditions`] | [`RunConditions`]: what a reader must know to judge the numbers |
//! | [`interference`] | period jitter of a bus, as an independent observer sees it |
//! | [`table`] | [`RunTable`]: the text of both, as servo papers print it |
//!
//! Times are nanoseconds in `u64`, with the suffix `_ns` where a field leaves the process.
#![forbid(unsafe_code)]

pub mod analysis;
pub mod beats;
pub mod bus;
pub mod conditions;
pub mod interference;
pub mod lowest;
pub mod record;
pub mod recording;
pub mod statistics;
pub mod summary;
pub mod table;

pub use conditions::{AskedAndGranted, RunConditions};
pub use record::{CycleRecord, Phase};
pub use recording::{Facts, Recording, RecordingReader, RecordingWriter};
pub use statistics::{Statistics, Summary};
pub use summary::{Occurrences, RunSummary};
pub use table::RunTable;
