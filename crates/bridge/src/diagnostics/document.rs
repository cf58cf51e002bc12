//! What stands in the document.

use serde::{Deserialize, Serialize};

use super::watched::Watched;
use crate::channel::PortCounters;
use crate::state::Spread;

/// What a running cycle tells of itself a few times a second, as JSON. A reader takes what it knows: fields may be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnostics {
    /// Counts up with every document.
    pub number: u64,
    /// The process that runs the cycle.
    pub process: u32,
    /// Its real-time threads: the cycle, then the tasks beside it.
    pub tasks: Vec<TaskDiagnostics>,
    /// What passed the ports.
    pub ports: Vec<PortCounters>,
    /// What became of the records of the cycle.
    pub watch: WatchDiagnostics,
    /// What the cycle asked of the system, and what it was granted.
    pub conditions: Conditions,
    /// What makes the numbers worse than they could be, each a sentence with its remedy.
    pub warnings: Vec<String>,
}

/// A real-time thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskDiagnostics {
    /// What it is called.
    pub name: String,
    /// The kernel's number of its thread; 0 where it is not known.
    pub thread: i32,
    /// Time between two releases.
    pub period_ns: u64,
    /// Jobs done.
    pub jobs: u64,
    /// From start to start.
    pub actual_period_ns: SpreadNs,
    /// From the release to the end.
    pub response_ns: SpreadNs,
    /// Jobs that ran past their next release.
    pub overruns: u64,
    /// What the kernel counted of its thread; none where that is not known.
    pub disturbances: Option<DisturbanceCounts>,
    /// What kept it from doing nothing but its work and its wait; none where it is not watched.
    pub watched: Option<Watched>,
}

/// What the kernel has counted of a real-time thread since it started: what of it disturbed a job, it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisturbanceCounts {
    /// Switches to another thread that it did not ask for.
    pub involuntary_switches: u64,
    /// Times it slept: with a cycle that runs undisturbed, once a job.
    pub voluntary_switches: u64,
    /// Page faults answered from memory.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
}

/// Smallest, mean and largest of a time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpreadNs {
    /// The smallest.
    pub minimum: u64,
    /// The mean.
    pub mean: u64,
    /// The largest.
    pub maximum: u64,
}

impl From<Spread> for SpreadNs {
    fn from(spread: Spread) -> Self {
        Self { minimum: spread.minimum_ns, mean: spread.mean_ns, maximum: spread.maximum_ns }
    }
}

/// What became of the records of the cycle: since its first beat in Op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchDiagnostics {
    /// Beats looked at.
    pub beats: u64,
    /// Records that were dropped because nobody took them in time.
    pub dropped_records: u64,
    /// Events of the bus that were.
    pub dropped_events: u64,
}

/// What the cycle asked of the system, and what it was granted: letters of PMCS, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// The kernel.
    pub kernel: String,
    /// What the bus hangs on.
    pub link: String,
    /// Asked for.
    pub profile_asked: String,
    /// Granted.
    pub profile_granted: String,
    /// CPU the cycle is bound to.
    pub cpu: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_of_another_version_is_read_as_far_as_it_is_known() {
        let read: Diagnostics = serde_json::from_str(
            r#"{"number": 7, "tasks": [{"name": "cycle", "mood": "good"}], "more": []}"#,
        )
        .unwrap();
        assert_eq!((read.number, read.tasks[0].name.as_str()), (7, "cycle"));
        let document = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<Diagnostics>(&document).unwrap(), read);
    }
}
