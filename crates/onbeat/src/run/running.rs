//! A robot's cycle from its first cycle to Init, and who watches it meanwhile.

use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

use control::clock::MonotonicClock;
use control::cycle::{Cycle, Ended};
use control::profile::{Granted, Grants, RealTimeProfile};
use control::stop::StopHandle;
use ipc::controller::ControllerCounters;
use record::{RunConditions, RunSummary};
use robot::{OverrunPolicy, RobotConfig};

use super::diagnostics::DiagnosticsWriter;
use super::prepare::Prepared;
use super::recorder::Recorder;
use super::side_tasks::Beside;
use super::tasks::Tasks;
use super::watch::{Measured, Watch};
use super::{Settings, conditions};
use crate::compose::link::RobotLink;
use crate::compose::names::part_names;
use crate::fault::FaultReports;
use crate::{Error, Notice, Reporter};

/// A run that is over.
pub(super) struct Ran {
    pub(super) measured: Measured,
    pub(super) conditions: RunConditions,
    pub(super) granted: Grants,
    /// The recording, if one was asked for: a sentence on it, or why it is not whole.
    pub(super) recorded: Option<Result<String, Error>>,
    /// Answers of the controller process, if there was to be one.
    pub(super) external: Option<ControllerCounters>,
    pub(super) ended: Ended<RobotLink>,
}

impl Settings {
    /// Runs the cycle on its own thread, and watches it until it is over.
    pub(super) fn run_cycle(
        &self,
        robot: &RobotConfig,
        prepared: Prepared,
        faults: Option<FaultReports>,
        reporter: &mut dyn Reporter,
    ) -> Result<Ran, Error> {
        let Prepared { cycle, observer, mut diagnosis, server, external, bus_server, .. } = prepared;
        let (beside, bus, file) = (prepared.beside, prepared.bus, prepared.file);
        thread::scope(|scope| {
            // However this one ends, the cycle comes to its end: the scope waits for it.
            let end = EndOf(&self.stop);
            let started = Started::new(scope, cycle, robot.cycle.real_time_profile(), &self.stop)?;
            let granted = started.granted;
            let conditions = conditions::conditions(robot, &granted, bus);
            let tasks = Tasks::new(started.number, beside.as_ref().map(Beside::tasks).unwrap_or_default());
            diagnosis.follow(self, robot, (started.number, &granted), tasks.subjects())?;
            let watch = Watch {
                observer,
                op_since: None,
                limit: self.cycles(robot),
                overrun_ends: robot.cycle.overrun == OverrunPolicy::Stop,
                summary: RunSummary::new(types::time::nanoseconds(robot.cycle.period)),
                diagnosis,
                recorder: file.map(|file| {
                    let names = part_names(robot, self.wire.interface.clone());
                    Recorder::begin(file, &conditions, robot.cycle.period, names)
                }),
                bus_server,
                faults,
                diagnostics: server.map(|server| DiagnosticsWriter::new(server, &conditions)),
                tasks,
                frozen: None,
            };
            let (measured, recorder) = watch.until_over(&self.stop, reporter, beside.as_ref());
            end.has_come();
            let (ended, not_put_back) = started.thread.join().map_err(|_| Error::Panicked)?;
            not_put_back.into_iter().for_each(|failure| reporter.notice(&Notice::NotPutBack(failure)));
            let recorded = recorder.map(|recorder| recorder.finish(&measured.summary));
            let external = external.map(|counters| counters.read());
            Ok(Ran { measured, conditions, granted, recorded, external, ended })
        })
    }
}

/// Asks for a stop when it goes out of scope.
struct EndOf<'a>(&'a StopHandle);

impl EndOf<'_> {
    /// Leaves the handle as it is: it may be that of other runs, too.
    fn has_come(self) {
        std::mem::forget(self);
    }
}

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The end of a cycle, and what could not be put back.
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
        cycle: Cycle<RobotLink, MonotonicClock>,
        profile: RealTimeProfile,
        stop: &'scope StopHandle,
    ) -> Result<Self, Error> {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            let granted = Granted::ask(&profile);
            let cycle = cycle.with_spin(granted.spin_margin());
            // Nobody listens any more only if the watch has panicked.
            let _ = tell.send((number, granted.grants().clone()));
            let ended = cycle.run(stop);
            (ended, granted.release())
        };
        let thread = thread::Builder::new().name("cycle".to_owned()).spawn_scoped(scope, work)?;
        // The first thing the thread does; nothing comes only if it has panicked.
        let (number, granted) = told.recv().map_err(|_| Error::Panicked)?;
        Ok(Self { thread, number, granted })
    }
}
