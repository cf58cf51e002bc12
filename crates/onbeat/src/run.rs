//! A run, from the robot's description to its summary.

mod bus;
mod conditions;
mod data_types;
#[cfg(feature = "diagnosis")]
mod diagnosis;
#[cfg(not(feature = "diagnosis"))]
#[path = "run/without_diagnosis.rs"]
mod diagnosis;
mod diagnostics;
mod name;
mod prepare;
#[cfg(feature = "recording")]
mod recorder;
#[cfg(not(feature = "recording"))]
#[path = "run/without_recording.rs"]
mod recorder;
mod running;
mod server;
#[cfg(feature = "devices")]
mod side_tasks;
#[cfg(not(feature = "devices"))]
#[path = "run/without_devices.rs"]
mod side_tasks;
mod tasks;
mod watch;

use std::time::Duration;

use control::stop::StopHandle;
use control::verdict::Circumstances;
use ethercat::al::AlState;
use robot::{AfterOutage, RobotConfig};
use rustix::process::{Resource, getrlimit};

use crate::compose::link::Wire;
use crate::compose::{configuration, link};
use crate::{Control, Error, Reporter, Summary};
use running::Ran;

pub use conditions::SIMULATED;
#[cfg(feature = "diagnosis")]
pub use diagnosis::Diagnosis;
pub(crate) use name::{Name, name};
#[cfg(feature = "recording")]
pub use recorder::{FlightRecorder, RecordedSignals, Threshold, Trigger, TriggerError};

/// Settings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) wire: Wire,
    pub(crate) stop: StopHandle,
    pub(crate) limit: Option<Limit>,
    pub(crate) ipc: IpcPlace,
    pub(crate) recording: recorder::Asked,
    pub(crate) diagnosis: diagnosis::Asked,
}

/// Length of a run in Op.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Cycles(u64),
    Time(Duration),
}

/// Place of the shared-memory interface.
#[derive(Clone, Debug, Default)]
pub(crate) enum IpcPlace {
    /// As the robot file says.
    #[default]
    AsDescribed,
    /// Under this name, or at this path.
    Named(String),
    /// There is none.
    Nowhere,
}

impl Settings {
    /// Runs `robot` from the first frame to the last.
    pub(crate) fn run(
        &self,
        robot: &RobotConfig,
        control: Control<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<Summary, Error> {
        refuse_limited_processor_time()?;
        let file = self.recording.create(reporter)?;
        let main_device = configuration::main_device(configuration::configuration(robot, AlState::Op))?;
        let doing = format!("run, robot \"{}\"", robot.name);
        let tell = &mut |notice: &_| reporter.notice(notice);
        let (link, faults) = link::open_with_faults(robot, &self.wire, &doing, tell)?;
        let prepared = self.prepare(robot, control, main_device, link, file, reporter)?;
        let ran = self.run_cycle(robot, prepared, faults, reporter)?;
        self.conclude(robot, ran)
    }

    /// Brings the simulated bus to PreOp and makes the cycle as a run does, alone; then lets all go.
    pub(crate) fn rehearse(&self, robot: &RobotConfig) -> Result<(), Error> {
        let mut alone = robot.clone();
        alone.peripherals.clear();
        let settings = Self { ipc: IpcPlace::Nowhere, ..Self::default() };
        let main_device = configuration::main_device(configuration::configuration(&alone, AlState::Op))?;
        let (link, _) = link::open_with_faults(&alone, &settings.wire, "check", &mut |_| ())?;
        let prepared = settings.prepare(&alone, Control::AsDescribed, main_device, link, None, &mut ())?;
        let (mut main_device, mut link) = prepared.cycle.abandon();
        settings.take_down(&mut main_device, &mut link)
    }

    /// Gathers the results. What was measured is there, even if the bus failed or a file is not whole.
    fn conclude(&self, robot: &RobotConfig, ran: Ran) -> Result<Summary, Error> {
        let Ran { measured, conditions, granted, recorded, external, ended } = ran;
        let findings = ended.findings(Circumstances {
            period: robot.cycle.period,
            hurried: self.stop.is_hurried(),
            resumes: robot.cycle.after_outage == AfterOutage::Resume,
        });
        let captured = ended.link.finish().transpose();
        let summary = Summary {
            timing: measured.summary,
            conditions,
            granted,
            findings,
            axis_names: robot.axes.iter().map(|axis| axis.name.clone()).collect(),
            status: ended.before_stop,
            signals: ended.signals,
            signal_counters: ended.signal_counters,
            failure: ended.failure,
            overruns: ended.overruns,
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

    /// Cycles to measure; `None` until a stop is asked for.
    fn cycles(&self, robot: &RobotConfig) -> Option<u64> {
        self.limit.map(|limit| match limit {
            Limit::Cycles(cycles) => cycles,
            Limit::Time(time) => {
                u64::try_from(time.as_nanos().div_ceil(robot.cycle.period.as_nanos())).unwrap_or(u64::MAX)
            }
        })
    }
}

/// Refuses a run that the system would end (SIGXCPU, then SIGKILL) once it has taken so much processor time.
fn refuse_limited_processor_time() -> Result<(), Error> {
    getrlimit(Resource::Cpu).current.map_or(Ok(()), |seconds| Err(Error::ProcessorTime { seconds }))
}
