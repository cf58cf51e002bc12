//! What the disturbance watch tells of a thread.

use serde::{Deserialize, Serialize};

/// What kept a real-time thread from doing nothing but its work and its wait, since its first release.
///
/// A call that sleeps counts as a system call, a blocking call and a sleep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// How it is found out: `tracepoints`, `software events` or `counters`; each knows less than the one before.
    pub means: String,
    /// Times it was switched out though it could have run.
    pub preemptions: u64,
    /// Times it slept, but for its period.
    pub sleeps: u64,
    /// Page faults answered from memory.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
    /// System calls, but for the wait and those that are its work.
    pub system_calls: u64,
    /// Those of them that slept.
    pub blocking_calls: u64,
    /// By what, the most frequent first.
    pub culprits: Vec<Culprit>,
    /// The first of each kind, in words, with a backtrace where one was asked for.
    pub firsts: Vec<String>,
    /// What the means do not show, each a sentence.
    pub missing: Vec<String>,
    /// Events the kernel had no room for.
    pub lost: u64,
}

/// What disturbed, how often, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Culprit {
    /// How, in words.
    pub kind: String,
    /// The system call, the thread that was preferred, or the memory that was missing.
    pub name: String,
    /// How often.
    pub count: u64,
    /// Period of the first time.
    pub first_period: u64,
    /// Period of the last time.
    pub last_period: u64,
}
