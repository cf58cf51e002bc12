//! A run, from the robot's description to its summary.

mod answers;
mod bus;
mod conditions;
mod data_types;
#[cfg(feature = "diagnosis")]
mod diagnosis;
#[cfg(not(feature = "diagnosis"))]
#[path = "run/without_diagnosis.rs"]
mod diagnosis;
mod diagnostics;
mod keeper;
mod name;
mod nic;
mod prepare;
#[cfg(feature = "recording")]
mod recorder;
#[cfg(not(feature = "recording"))]
#[path = "run/without_recording.rs"]
mod recorder;
mod server;
#[cfg(feature = "devices")]
mod side_tasks;
#[cfg(not(feature = "devices"))]
#[path = "run/without_devices.rs"]
mod side_tasks;
mod start_faults;
mod tasks;
mod watch;

use std::any::Any;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

use control::controller::Controller;
use control::cycle::{Cycle, Ended};
use control::stop::StopHandle;
use control::verdict::Circumstances;
use ethercat::al::AlState;
use ethercat::main_device::{Configuration, MainDevice};
use ipc::controller::ControllerCounters;
use record::{RunConditions, RunSummary};
use robot::{AfterOutage, OverrunPolicy, RobotConfig};
use rt::clock::BusClock;
use rt::profile::{Granted, Grants, RealTimeProfile};
use rustix::process::{Resource, getrlimit};

use crate::compose::findings::FindingWords;
use crate::compose::link::RobotLink;
use crate::compose::names::part_names;
use crate::compose::{configuration, link};
use crate::error::FailedStart;
use crate::fault::FaultReports;
use crate::robot::{Parts, Settings};
use crate::{Control, Error, Notice, Reporter, Robot, Summary};
use answers::Answers;
use diagnostics::DiagnosticsWriter;
use keeper::KeptState;
use nic::Nics;
use prepare::Prepared;
use recorder::Recorder;
use side_tasks::Beside;
use tasks::Tasks;
use watch::{Load, Measured, Watch};

pub use conditions::SIMULATED;
pub(crate) use name::{Name, name};
#[cfg(feature = "recording")]
pub(crate) use recorder::Kept;
#[cfg(feature = "recording")]
pub use recorder::RecordedSignals;
pub(crate) use recorder::RecordingSettings;

impl Robot {
    /// Runs it with a custom controller, until it is stopped.
    ///
    /// Returns a [`Summary`] also of a run that did not go as it should: its findings say so.
    ///
    /// # Errors
    /// A run that could not start: nothing has moved. A controller that panicked: its axes have
    /// stopped, and the bus is in Init.
    pub fn run(self, controller: impl Controller + 'static) -> Result<Summary, Error> {
        self.run_with(|_| controller)
    }

    /// Runs it as [`Robot::run`] does, with a controller that takes ports of the shared-memory
    /// interface.
    ///
    /// # Errors
    /// As [`Robot::run`].
    pub fn run_with<C: Controller + 'static>(
        self,
        make: impl FnOnce(&mut Parts) -> C,
    ) -> Result<Summary, Error> {
        self.run_by(Control::Own(Box::new(|parts| Box::new(make(parts)))), &mut ())
    }

    /// Runs it with the controllers of its robot file.
    ///
    /// # Errors
    /// As [`Robot::run`].
    pub fn run_as_described(self) -> Result<Summary, Error> {
        self.run_by(Control::AsDescribed, &mut ())
    }

    /// Runs it as [`Robot::run`] does; `reporter` follows it.
    ///
    /// # Errors
    /// As [`Robot::run`].
    pub fn run_by(self, control: Control<'_>, reporter: &mut dyn Reporter) -> Result<Summary, Error> {
        let settings = Settings { stop: self.stop.unwrap_or_default(), ..self.settings };
        settings.run(&self.config, control, reporter)
    }
}

impl Settings {
    /// Runs `robot` from the first frame to the last.
    fn run(
        &self,
        robot: &RobotConfig,
        control: Control<'_>,
        reporter: &mut dyn Reporter,
    ) -> Result<Summary, Error> {
        refuse_limited_processor_time()?;
        let main_device = self.main_device(robot)?;
        // Before the link is open: changes to the interface may take it down for a moment, and
        // opening waits for a carrier.
        let nics = Nics::prepare(robot, &self.wire, reporter);
        let summary = self.run_from(main_device, robot, control, &nics, reporter);
        nics.put_back(reporter);
        summary
    }

    fn main_device(&self, robot: &RobotConfig) -> Result<MainDevice, Error> {
        let configuration = configuration::configuration(robot, AlState::Op);
        if self.wire.is_fast() {
            // Neither chance nor the time of day is in a run that is to be the same every time.
            return Ok(MainDevice::new(Configuration { system_time_at_epoch: 0, ..configuration })?);
        }
        configuration::main_device(configuration)
    }

    /// Runs it on interfaces that are prepared, until the link is closed.
    fn run_from(
        &self,
        main_device: MainDevice,
        robot: &RobotConfig,
        control: Control<'_>,
        nics: &Nics,
        reporter: &mut dyn Reporter,
    ) -> Result<Summary, Error> {
        let doing = format!("run, robot \"{}\"", robot.name);
        let tell = &mut |notice: &_| reporter.notice(notice);
        let link::Opened { link, clock, name, faults } =
            link::open_with_faults(robot, &self.wire, &doing, tell)?;
        // Only now: a run that is refused leaves no empty recording, and replaces none.
        let file = self.recording.create(reporter)?;
        let prepared = self.prepare(robot, control, main_device, (link, clock, name), file, reporter)?;
        let ran = self.run_cycle(robot, prepared, nics, faults, reporter)?;
        ran.summary(robot, &self.stop)
    }

    /// Runs the cycle on a separate thread, and watches it until its end.
    fn run_cycle(
        &self,
        robot: &RobotConfig,
        prepared: Prepared,
        nics: &Nics,
        faults: Option<FaultReports>,
        reporter: &mut dyn Reporter,
    ) -> Result<Ran, Error> {
        let Prepared { cycle, clock, observer, mut diagnosis, server, external, bus_server, .. } = prepared;
        let (beside, bus, file) = (prepared.beside, prepared.bus, prepared.file);
        let kept = prepared.kept;
        thread::scope(|scope| {
            // The cycle ends even if this one panics: the scope waits for it.
            let end = EndOf(&self.stop);
            // A cycle that never sleeps takes no CPU from others.
            let profile = match self.wire.is_fast() {
                true => RealTimeProfile::ORDINARY,
                false => robot.cycle.real_time_profile(),
            };
            // Before the cycle runs: a virtual clock then leaves the time of day behind.
            let offset = recorder::realtime_offset_ns(&clock);
            let started = Started::new(scope, cycle, profile, &self.stop)?;
            let granted = started.granted;
            let conditions = conditions::conditions(robot, &granted, nics, bus);
            let tasks = Tasks::new(started.number, beside.as_ref().map(Beside::tasks).unwrap_or_default());
            diagnosis.follow(self, robot, (started.number, &granted), tasks.subjects())?;
            let watch = Watch {
                clock,
                observer,
                op_since: None,
                limit: self.cycles(robot),
                overrun_ends: robot.cycle.overrun == OverrunPolicy::Stop && !self.wire.is_in_bus_time(),
                summary: RunSummary::new(types::time::nanoseconds(robot.cycle.period)),
                diagnosis,
                recorder: file.map(|file| {
                    let names = part_names(robot, self.wire.interface.clone());
                    Recorder::begin(
                        file,
                        &conditions,
                        robot.cycle.period,
                        names,
                        (self.wire.is_fast(), offset),
                    )
                }),
                bus_server,
                faults,
                answers: external.clone().map(|counters| Answers::new(counters, robot)),
                diagnostics: server.map(|server| DiagnosticsWriter::new(server, &conditions)),
                loads: loads(robot),
                tasks,
                keeper: kept.map(KeptState::start),
                frozen: None,
            };
            let (measured, recorder, keeper) = watch.until_over(&self.stop, reporter, beside.as_ref());
            end.has_come();
            let joined = started.thread.join();
            let recorded = recorder.map(|recorder| recorder.finish(&measured.summary, reporter));
            if let Some(keeper) = keeper {
                keeper.finish(joined.is_ok(), reporter);
            }
            let ended = joined.map_err(panicked).and_then(|(mut ended, not_put_back)| {
                not_put_back.into_iter().for_each(|failure| reporter.notice(&Notice::NotPutBack(failure)));
                let panic = ended.controller_panic.take();
                panic.map_or(Ok(ended), |message| Err(Error::ControllerPanicked { message }))
            });
            let ended = ended.inspect_err(|_| tell_recorded(recorded.as_ref(), reporter))?;
            let external = external.map(|counters| counters.read());
            Ok(Ran { measured, conditions, granted, recorded, external, ended })
        })
    }
}

/// A run that has ended.
struct Ran {
    measured: Measured,
    conditions: RunConditions,
    granted: Grants,
    /// The recording, if requested: a sentence on it, or the reason why it is incomplete.
    recorded: Option<Result<String, Error>>,
    /// Answers of the controller process, if there was to be one.
    external: Option<ControllerCounters>,
    ended: Ended<RobotLink>,
}

impl Ran {
    /// Gathers the results. What was measured is there, even if the bus failed or a file is not
    /// whole.
    fn summary(self, robot: &RobotConfig, stop: &StopHandle) -> Result<Summary, Error> {
        let Ran { measured, conditions, granted, recorded, external, ended } = self;
        let findings = ended.findings(Circumstances {
            period: robot.cycle.period,
            hurried: stop.is_hurried(),
            resumes: robot.cycle.after_outage == AfterOutage::Resume,
        });
        let words = FindingWords { robot, status: &ended.before_stop, link_trouble: None };
        let sentences = findings.iter().map(|finding| words.sentence(finding)).collect();
        let captured = ended.link.finish().transpose();
        let summary = Summary {
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
        if summary.failure.is_some() && summary.cycles() == 0 {
            let Summary { failure, findings, sentences, status, files, .. } = summary;
            let failed = FailedStart { failure, findings, sentences, status, files };
            return Err(Error::NotInOp(Box::new(failed)));
        }
        Ok(summary)
    }
}

/// Asks for a stop when it goes out of scope.
struct EndOf<'a>(&'a StopHandle);

impl EndOf<'_> {
    /// Leaves the handle unchanged: it may belong to other runs, too.
    fn has_come(self) {
        std::mem::forget(self);
    }
}

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The end of a cycle, and sentences on changes that could not be undone.
type End = (Ended<RobotLink>, Vec<String>);

/// A cycle that runs on its thread.
struct Started<'scope> {
    thread: ScopedJoinHandle<'scope, End>,
    /// The kernel's number of the thread.
    number: i32,
    granted: Grants,
}

impl<'scope> Started<'scope> {
    fn new(
        scope: &'scope Scope<'scope, '_>,
        cycle: Cycle<RobotLink, BusClock>,
        profile: RealTimeProfile,
        stop: &'scope StopHandle,
    ) -> Result<Self, Error> {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            let granted = Granted::ask(&profile);
            let cycle = cycle.with_spin(granted.spin_margin());
            // The receiver is gone only if the watch has panicked.
            let _ = tell.send((number, granted.grants().clone()));
            let ended = cycle.run(stop);
            (ended, granted.release())
        };
        let thread = thread::Builder::new().name("cycle".to_owned()).spawn_scoped(scope, work)?;
        // The first thing the thread does; nothing comes only if it has panicked.
        let Ok((number, granted)) = told.recv() else {
            let ended = |_| Error::Panicked { message: "it ended before its first cycle".to_owned() };
            return Err(thread.join().map_or_else(panicked, ended));
        };
        Ok(Self { thread, number, granted })
    }
}

/// Reports the recording of a run that returns an error instead of a summary.
fn tell_recorded(recorded: Option<&Result<String, Error>>, reporter: &mut dyn Reporter) {
    let words = recorded.map(|it| it.as_ref().map_or_else(Error::to_string, String::clone));
    words.into_iter().for_each(|words| reporter.notice(&Notice::Recording(words)));
}

fn panicked(panic: Box<dyn Any + Send>) -> Error {
    Error::Panicked { message: rt::task::words(&*panic) }
}

/// Refuses a run that the system would end (SIGXCPU, then SIGKILL) once it has taken so much
/// processor time.
fn refuse_limited_processor_time() -> Result<(), Error> {
    getrlimit(Resource::Cpu).current.map_or(Ok(()), |seconds| Err(Error::ProcessorTime { seconds }))
}

/// Axes with a load that falls without torque, or behind a brake that does not close.
fn loads(robot: &RobotConfig) -> Vec<Load> {
    let axes = robot.axes.iter().enumerate().filter(|(_, axis)| axis.holds_load);
    axes.map(|(axis, it)| Load { axis, name: it.name.clone(), has_brake: it.brake.is_some() }).collect()
}
