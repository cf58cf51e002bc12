//! Contents of the diagnostics document.

use serde::{Deserialize, Serialize};
use types::cause::Disturbance;
use types::late::LateCycle;

use super::bus::BusDiagnosis;
use super::figures::{Figures, SpreadNs};
use crate::bus;
use crate::channel::PortCounters;
use crate::controller::ControllerCounters;

/// Diagnostics of a running cycle, as JSON, a few times a second. Readers must ignore unknown
/// fields: fields may be added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnostics {
    /// Sequence number of the document.
    pub number: u64,
    /// Id of the process that runs the cycle.
    pub process: u32,
    /// Real-time threads of the process: the cycle, then the other tasks.
    pub tasks: Vec<TaskDiagnostics>,
    /// Figures since the first cycle in Op, and counts of events.
    pub figures: Figures,
    /// Traffic of the ports.
    pub ports: Vec<PortCounters>,
    /// Requests to the bus.
    pub bus: bus::Counters,
    /// The bus itself, once a second; none before its first answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus_diagnosis: Option<BusDiagnosis>,
    /// Answers of the controller process; none in a cycle without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerCounters>,
    /// Records of the cycle: kept and dropped.
    pub watch: WatchDiagnostics,
    /// Late cycles with their causes; none in a cycle that is not explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateCycles>,
    /// Conditions requested from the system, and granted ones.
    pub conditions: Conditions,
    /// Conditions that worsen the timing, each a sentence with its remedy.
    pub warnings: Vec<String>,
}

/// Late cycles as their run explains them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LateCycles {
    /// Lateness above which a cycle is late.
    pub above_ns: u64,
    /// Late cycles so far.
    pub count: u64,
    /// The newest of them, oldest first, each with its largest causes.
    pub newest: Vec<LateCycle>,
}

/// Diagnostics of a real-time thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskDiagnostics {
    /// Name of the thread.
    pub name: String,
    /// Thread id of the kernel; 0 if unknown.
    pub thread: i32,
    /// Time between two releases.
    pub period_ns: u64,
    /// Jobs completed.
    pub jobs: u64,
    /// Actual period: from start to start.
    pub actual_period_ns: SpreadNs,
    /// Response time: from the release to the end.
    pub response_ns: SpreadNs,
    /// Jobs that ran past their next release.
    pub overruns: u64,
    /// Counts of the kernel for this thread; none if unknown.
    pub disturbances: Option<DisturbanceCounts>,
    /// Disturbances of the thread; none if it is not watched.
    pub watched: Option<Watched>,
}

/// Counts of the kernel for a real-time thread since its start. They do not show which of them
/// disturbed a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DisturbanceCounts {
    /// Involuntary switches to another thread.
    pub involuntary_switches: u64,
    /// Voluntary switches: once a job for an undisturbed cycle.
    pub voluntary_switches: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that waited for a disk.
    pub major_faults: u64,
}

/// Records of the cycle since its first cycle in Op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchDiagnostics {
    /// Number of evaluated cycles.
    pub cycles: u64,
    /// Records dropped because they were not taken in time.
    pub dropped_records: u64,
    /// Events of the bus dropped for the same reason.
    pub dropped_events: u64,
}

/// Conditions requested from the system and granted: letters of PMCS, or `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Kernel version.
    pub kernel: String,
    /// Link of the bus.
    pub link: String,
    /// Profile requested.
    pub profile_requested: String,
    /// Profile granted.
    pub profile_granted: String,
    /// CPU the cycle is bound to.
    pub cpu: Option<usize>,
}

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

#[cfg(test)]
mod tests {
    use types::cause::Kind;
    use types::late::Cause;

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

    /// Readers get the kinds of the causes, and make the sentence. A newer kind is unknown.
    // feature(explain): a late cycle keeps its typed causes up to the reader
    #[test]
    fn a_late_cycle_keeps_its_typed_causes() {
        let cause = Cause { kind: Kind::Irq, name: "24 eth0".to_owned(), ns: 61_000 };
        let late =
            LateCycle { cycle: 48_213, late_ns: 61_000, causes: vec![cause], ..LateCycle::default() };
        let json = serde_json::json!({
            "cycle": 48_213, "late_ns": 61_000, "late": "start", "release_ns": 0, "start_ns": 0, "end_ns": 0,
            "causes": [{ "kind": "irq", "name": "24 eth0", "ns": 61_000 }],
        });
        assert_eq!(serde_json::to_value(&late).unwrap(), json);
        let read: LateCycle = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(read.to_string(), "cycle 48 213 started 61 us late: irq 24 eth0 61 us");
        let mut newer = json;
        newer["causes"][0]["kind"] = "black_hole".into();
        assert_eq!(serde_json::from_value::<LateCycle>(newer).unwrap().causes[0].kind, Kind::Unknown);
    }
}
