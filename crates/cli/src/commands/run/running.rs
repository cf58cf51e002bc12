//! A robot's cycle from its first beat to Init, and who watches it meanwhile.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread::{self, Scope, ScopedJoinHandle};

use bridge::controller::ControllerCounters;
use robot::{ControllerKind, Overrun, Robot};
use runtime::clock::MonotonicClock;
use runtime::cycle::{Cycle, Ended};
use runtime::disturbance::{CycleWatch, Detail, Disturbances};
use runtime::link::{PacketLink, SIMULATED_SYSTEM_CALLS};
use runtime::profile::{Grants, RealTimeProfile};
use runtime::stop::StopHandle;
use timing::{RunConditions, RunSummary};

use super::beside::Beside;
use super::chronicle::Chronicle;
use super::outcome;
use super::prepare::Prepared;
use super::recorder::{self, Recorder};
use super::tasks::{self, Tasks};
use super::teller::Teller;
use super::watch::{self, Measured, Watch};
use super::{Run, Watching};
use crate::compose::link::RobotLink;
use crate::compose::profile;
use crate::failure::Failure;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;

/// A run that is over.
pub(super) struct Ran {
    pub(super) measured: Measured,
    pub(super) conditions: RunConditions,
    pub(super) granted: Grants,
    /// The recording, if one was asked for: a sentence on it, or why it is not whole.
    pub(super) recorded: Option<Result<String, Failure>>,
    /// Why the link carried no frames at the end, if that is known.
    pub(super) link_trouble: Option<String>,
    /// Answers of the controller process, if there was to be one.
    pub(super) external: Option<ControllerCounters>,
    pub(super) ended: Ended<RobotLink>,
}

impl Run {
    /// Runs the cycle on its own thread, and watches it until it is over.
    pub(super) fn run(
        &self,
        robot: &Robot,
        prepared: Prepared,
        file: Option<recorder::NewFile>,
        stop: &Stop,
        live: &mut LiveLine,
    ) -> Result<Ran, Failure> {
        let Prepared { cycle, observer, mut explainer, door, external, beside, bus } = prepared;
        thread::scope(|scope| {
            // However this one ends, the cycle comes to its end: the scope waits for it.
            let _end = EndOf(stop.handle());
            let started = Started::new(scope, cycle, profile::profile(&robot.cycle), stop.handle())?;
            explainer.iter_mut().for_each(|explainer| explainer.follow(started.number));
            let granted = started.granted;
            let conditions = outcome::conditions(robot, &granted, bus);
            let disturbances = self.watch_disturbances(started.number, robot, &granted)?;
            let beside_it = beside.as_ref().map(Beside::tasks).unwrap_or_default();
            let watch = Watch {
                observer,
                chronicle: Chronicle::new(robot, self.wire.iface.clone(), live.voice()),
                limit: self.limit(robot),
                overrun_ends: robot.cycle.overrun == Overrun::Stop,
                summary: RunSummary::new(u64::try_from(robot.cycle.period.as_nanos()).unwrap_or(u64::MAX)),
                explainer,
                recorder: file.map(|file| Recorder::begin(file, &conditions, robot.cycle.period)),
                teller: door.map(|door| Teller::new(door, &conditions)),
                tasks: Tasks::new(started.number, beside_it, disturbances),
                frozen: None,
            };
            let (measured, recorder, chronicle) = watch_over(watch, stop, live, beside.as_ref());
            let (ended, not_put_back) =
                started.thread.join().map_err(|_| Failure::new("the cycle's thread panicked"))?;
            not_put_back.iter().for_each(|failure| live.say(failure));
            tell_disturbances(&measured.disturbances, live);
            let recorded = recorder.map(|recorder| recorder.finish(&measured.summary));
            let link_trouble = chronicle.link_trouble().map(str::to_owned);
            let external = external.map(|counters| counters.read());
            Ok(Ran { measured, conditions, granted, recorded, link_trouble, external, ended })
        })
    }

    /// Watches the cycle's thread, if that is wanted.
    fn watch_disturbances(
        &self,
        thread: i32,
        robot: &Robot,
        granted: &Grants,
    ) -> Result<Option<CycleWatch>, Failure> {
        let detail = match self.watch {
            None => return Ok(None),
            Some(Watching::Counts) => Detail::Counts,
            Some(Watching::Backtraces) => Detail::Backtraces,
        };
        let mut expected = match self.wire.iface {
            Some(_) => PacketLink::SYSTEM_CALLS.to_vec(),
            None => SIMULATED_SYSTEM_CALLS.to_vec(),
        };
        let is_external = |it: &robot::Controller| matches!(it.kind, ControllerKind::External(_));
        if self.wire.capture.is_some() || robot.controllers.iter().any(is_external) {
            // The thread that writes the file is woken up; so is a controller process, and waited for.
            expected.push("futex");
        }
        let times = (robot.cycle.period, granted.spin_margin());
        Ok(Some(CycleWatch::start(detail, thread, times, &expected)?))
    }
}

/// Asks for a stop when it goes out of scope.
struct EndOf<'a>(&'a StopHandle);

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
    ) -> Result<Self, Failure> {
        let (tell, told) = mpsc::channel();
        let work = move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            let granted = profile.apply();
            let cycle = cycle.with_spin(granted.spin_margin());
            // Nobody listens any more only if the watch has panicked.
            let _ = tell.send((number, granted.grants().clone()));
            let ended = cycle.run(stop);
            (ended, granted.release())
        };
        let thread = thread::Builder::new().name("cycle".to_owned()).spawn_scoped(scope, work)?;
        // The first thing the thread does; nothing comes only if it has panicked.
        let (number, granted) = told.recv().map_err(|_| Failure::new("the cycle's thread panicked"))?;
        Ok(Self { thread, number, granted })
    }
}

/// What disturbed the real-time threads, and what the means do not show, each once.
fn tell_disturbances(found: &[Disturbances], live: &LiveLine) {
    found.iter().for_each(|found| live.say(&tasks::in_words(found)));
    let missing: BTreeSet<&str> = found.iter().flat_map(|it| &it.missing).map(String::as_str).collect();
    missing.iter().for_each(|missing| live.say(missing));
}

/// Looks until the cycle is over. The cycle ends by itself: whatever holds this up does not hold up the end.
fn watch_over(
    mut watch: Watch,
    stop: &Stop,
    live: &mut LiveLine,
    beside: Option<&Beside>,
) -> (Measured, Option<Recorder>, Chronicle) {
    while !watch.is_over() {
        thread::sleep(watch::LOOK_EVERY);
        // Asked before the look: what was measured until then is taken.
        let asked = stop.asked();
        watch.look(live);
        beside.into_iter().for_each(|beside| beside.look(live));
        if asked || watch.has_enough() {
            watch.freeze();
        }
    }
    watch.look(live);
    live.finish();
    watch.measured()
}
