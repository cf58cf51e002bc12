//! Results of a run that has ended.

use std::fmt;
use std::time::Duration;

use control::controller::AxisReport;
use control::cycle::HostStalls;
use control::signal::{Counters, SignalState};
use control::status::Status;
use control::verdict::Finding;
use ethercat::main_device::{BusError, SyncPhase};
use ipc::controller::ControllerCounters;
use ipc::diagnostics::TaskDiagnostics;
use record::{RunConditions, RunSummary};
use rt::pacer::Overruns;
use rt::profile::Grants;
use types::Signal;

use crate::Error;
use crate::error::incomplete;

/// Results of a run that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Summary {
    /// Timing of the cycles in Op, up to the stop.
    pub timing: RunSummary,
    /// Machine, robot and bus that it was measured with.
    pub conditions: RunConditions,
    /// Real-time settings, each with its grant or refusal.
    pub granted: Grants,
    /// Findings; none after a run that went as it should.
    pub findings: Vec<Finding>,
    /// A sentence on each finding, in the same order: place, cause and remedy.
    pub sentences: Vec<String>,
    /// Names of the axes, in the order of [`Status::axes`].
    pub axis_names: Vec<String>,
    /// Axes, SubDevices and bus in the last cycle before the stop.
    pub status: Status,
    /// SYNC0 and SYNC1 of the SubDevices, in the order of positions, against the last frame that
    /// had the reference clock's time.
    pub sync_phases: Vec<[Option<SyncPhase>; 2]>,
    /// Signals in the last cycle before the stop.
    pub signals: Vec<(Signal, SignalState)>,
    /// Outputs set to what they could not be, since the start.
    pub signal_counters: Counters,
    /// Failure of the bus that ended the run.
    pub failure: Option<BusError>,
    /// Cycles that ran past their next release, from the first to the last.
    pub overruns: Overruns,
    /// Stalls of the host that a simulated bus waited for; `None` on a wire, and in other times.
    pub host_stalls: Option<HostStalls>,
    /// Cycle with the overrun that ended the run, if the robot file says so.
    pub stopped_by_overrun: Option<u64>,
    /// Answers of the controller process, in a run with one.
    pub controller: Option<ControllerCounters>,
    /// The cycle's thread and the devices' tasks.
    pub tasks: Vec<TaskDiagnostics>,
    /// Disturbances of these, and causes of late cycles.
    #[cfg(feature = "diagnosis")]
    pub diagnosis: Diagnosis,
    /// Recording and capture, if requested: a sentence on each, or the reason why it is incomplete.
    pub files: Vec<Result<String, Error>>,
}

/// Results of diagnosis.
#[cfg(feature = "diagnosis")]
#[derive(Debug)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Disturbances of [`Summary::tasks`], if they were watched.
    pub disturbances: Vec<diagnose::disturbance::Disturbances>,
    /// Causes of late cycles, if requested.
    pub explanation: Option<diagnose::Explanation>,
}

impl Summary {
    /// Cycles in Op, up to the stop.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.timing.cycles()
    }

    /// Longest time from a release to the start of its cycle, in Op, and the number of that cycle.
    #[must_use]
    pub fn worst_lateness(&self) -> Option<(Duration, u64)> {
        let latency = &self.timing.wakeup_latency;
        Some((Duration::from_nanos(latency.maximum()?), latency.maximum_cycle()?))
    }

    /// True if no fault was found, and each requested file is complete.
    #[must_use]
    pub fn went_well(&self) -> bool {
        self.findings.is_empty() && self.files.iter().all(Result::is_ok)
    }

    /// Last report of an axis before the stop, by its name.
    #[must_use]
    pub fn axis(&self, name: &str) -> Option<&AxisReport> {
        self.status.axes.get(self.axis_names.iter().position(|it| it == name)?)
    }

    /// Value of a signal in the last cycle before the stop, by its name.
    #[must_use]
    pub fn signal(&self, name: &str) -> Option<SignalState> {
        self.signals.iter().find(|(signal, _)| signal.name == name).map(|&(_, state)| state)
    }
}

/// A line with the counts and the worst lateness, then a line for each finding and each file that
/// is incomplete.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.cycles())?;
        if let Some((lateness, cycle)) = self.worst_lateness() {
            write!(f, ", worst lateness {:.3} ms in cycle {cycle}", lateness.as_secs_f64() * 1e3)?;
        }
        write!(
            f,
            ", {} frames lost, {} overruns, {} findings",
            self.timing.lost_frames.count,
            self.timing.overruns.count,
            self.findings.len()
        )?;
        self.sentences.iter().try_for_each(|sentence| write!(f, "\n{sentence}"))?;
        f.write_str(&incomplete(&self.files))
    }
}
