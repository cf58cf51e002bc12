//! Results of the disturbance watch of a thread.

use serde::{Deserialize, Serialize};
use types::cause::Disturbance;

/// Disturbances of a real-time thread, that is, anything but its work and its wait, since its first
/// release.
///
/// A call that sleeps counts as a system call, a blocking call and a sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// Means of observation: `tracepoints`, `software events` or `counters`, each less complete
    /// than the one before.
    pub means: String,
    /// Times it was switched out while runnable.
    pub preemptions: u64,
    /// Sleeps other than the wait for its period.
    pub sleeps: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// System calls other than its wait and its work.
    pub system_calls: u64,
    /// System calls among them that slept.
    pub blocking_calls: u64,
    /// Causes, the most frequent first.
    pub causes: Vec<Disturbance>,
    /// First disturbance of each kind, in words, with a backtrace if one was requested.
    pub firsts: Vec<String>,
    /// Gaps of the means of observation, each a sentence.
    pub missing: Vec<String>,
    /// Events lost because the kernel's buffer was full.
    pub lost: u64,
}
