//! Measured time of cycles as numbers, from the record of one to the summary of a run: without I/O,
//! without a clock.
//!
//! The times of three cycles of 1 ms, as a table:
//!
//! ```
//! use onbeat_record::{CycleRecord, Phase, RunSummary, RunTable};
//!
//! let mut summary = RunSummary::new(1_000_000);
//! for (cycle, lateness) in [(0, 4_000), (1, 9_000), (2, 5_000)] {
//!     let release = cycle * 1_000_000;
//!     let start = release + lateness;
//!     let mut record = CycleRecord::begin(cycle, release, start);
//!     record.finish(Phase::Receive, start + 10_000);
//!     record.finish(Phase::Update, start + 30_000);
//!     record.finish(Phase::Transmit, start + 50_000);
//!     summary.record(&record);
//! }
//! assert_eq!(summary.wakeup_latency.maximum(), Some(9_000));
//! assert_eq!(summary.wakeup_latency.maximum_cycle(), Some(1));
//! assert_eq!(summary.response_time.maximum(), Some(59_000));
//! assert_eq!(summary.overruns.count, 0);
//! println!("{}", RunTable(&summary)); // average, percentiles and maximum of each time
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`record`] | [`CycleRecord`]: duration of each phase of one cycle |
//! | `recorder` | `CycleWriter`: a file, parts, or a flight recorder (feature `recording`) |
//! | `recording` | `Recording`: an MCAP file with raw data, conditions (feature `recording`) |
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
pub mod recorder;
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
