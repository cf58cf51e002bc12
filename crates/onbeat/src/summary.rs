//! Results of a run that has ended.

use std::fmt;
use std::time::Duration;

use control::controller::AxisReport;
use control::cycle::HostStalls;
use control::signal::{Counters, SignalState};
use control::status::Status;
use control::stop::StopHandle;
use control::verdict::{Circumstances, Finding};
use ethercat::main_device::{BusError, SyncPhase};
use ipc::controller::ControllerCounters;
use ipc::diagnostics::TaskDiagnostics;
use record::{RunConditions, RunSummary};
use robot::{AfterOutage, RobotConfig};
use rt::pacer::Overruns;
use rt::profile::Grants;
use types::Signal;

use crate::Error;
use crate::compose::findings::FindingWords;
use crate::error::incomplete;
use crate::run::Ran;

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
    /// Cycles that ended after the next release, from the first to the last. With a bus in the
    /// process, the time of its simulation counts here, but not in [`Self::timing`].
    pub overruns: Overruns,
    /// Stalls of the host that a bus in the process waited for; `None` on a wire, and in other
    /// times.
    pub host_stalls: Option<HostStalls>,
    /// Cycle with the overrun that ended the run, if the robot file says so.
    pub stopped_by_overrun: Option<u64>,
    /// Answers of the controller process, in a run with one.
    pub controller: Option<ControllerCounters>,
    /// The cycle's thread and the devices' tasks.
    pub tasks: Vec<TaskDiagnostics>,
    /// Disturbances of these, and causes of late cycles.
    #[cfg(feature = "diagnosis")]
    pub diagnosis: crate::Diagnosis,
    /// Recording and capture, if requested: a sentence on each, or the reason why it is incomplete.
    pub files: Vec<Result<String, Error>>,
}

impl Summary {
    /// Gathers the results. What was measured is there, even if the bus failed or a file is not
    /// whole.
    pub(crate) fn of(ran: Ran, robot: &RobotConfig, stop: &StopHandle) -> Result<Self, Error> {
        let Ran { measured, conditions, granted, recorded, external, ended } = ran;
        let findings = ended.findings(Circumstances {
            period: robot.cycle.period,
            hurried: stop.is_hurried(),
            resumes: robot.cycle.after_outage == AfterOutage::Resume,
        });
        let words = FindingWords { robot, status: &ended.before_stop, link_trouble: None };
        let sentences = findings.iter().map(|finding| words.sentence(finding)).collect();
        let captured = ended.link.finish().transpose();
        let summary = Self {
            timing: measured.summary,
            conditions,
            granted,
            findings,
            sentences,
            axis_names: robot.axes.iter().map(|axis| axis.name.clone()).collect(),
            sync_phases: (0..ended.before_stop.sub_devices.len())
                .map(|position| ended.main_device.sync_phases(position))
                .collect(),
            status: ended.before_stop,
            signals: ended.signals,
            signal_counters: ended.signal_counters,
            failure: ended.failure,
            overruns: ended.overruns,
            host_stalls: ended.host_stalls,
            stopped_by_overrun: ended.stopped_by_overrun,
            controller: external,
            tasks: measured.tasks,
            #[cfg(feature = "diagnosis")]
            diagnosis: measured.diagnosis,
            files: captured.into_iter().chain(recorded).collect(),
        };
        match summary.failure.is_some() && summary.cycles() == 0 {
            true => Err(Error::NotInOp(Box::new(summary))),
            false => Ok(summary),
        }
    }

    /// Cycles in Op, up to the stop.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.timing.cycles()
    }

    /// Longest time from a release to the start of its cycle, in Op, and the number of that cycle.
    #[must_use]
    pub fn worst_wakeup_latency(&self) -> Option<(Duration, u64)> {
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

/// A line with the counts and the worst wakeup latency, then a line for each finding and each file
/// that is incomplete.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cycles", self.cycles())?;
        if let Some((latency, cycle)) = self.worst_wakeup_latency() {
            write!(f, ", worst wakeup latency {:.3} ms in cycle {cycle}", latency.as_secs_f64() * 1e3)?;
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
