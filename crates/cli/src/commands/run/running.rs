//! A robot's cycle from bring-up to Init, with all that stands around it.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread;

use blame::Explainer;
use ethercat::main_device::{MainDevice, SubDevice};
use robot::{Overrun, Robot};
use runtime::bring_up::Pump;
use runtime::clock::MonotonicClock;
use runtime::cycle::{Cycle, CycleConfiguration, Ended, FrameOrder};
use runtime::disturbance::{CycleWatch, Detail, Disturbances};
use runtime::link::{PacketLink, SIMULATED_SYSTEM_CALLS};
use runtime::profile::Grants;
use runtime::stop::StopHandle;
use runtime::{axis, beat_number, interlock};
use timing::RunConditions;

use super::beside::Beside;
use super::door::{self, Open};
use super::outcome::{self, Bus};
use super::recorder::{self, Recorder};
use super::tasks::{self, Tasks};
use super::teller::Teller;
use super::watch::{self, Measured, Watch};
use super::{Own, Run, Watching};
use crate::bus::bring_up;
use crate::compose::link::RobotLink;
use crate::compose::seam::Mover;
use crate::compose::{axes, controller, peripherals, profile};
use crate::failure::Failure;
use crate::stop;
use crate::words::live_line::LiveLine;
use crate::words::sub_devices::unwatched;

impl Run {
    /// Brings the bus up, runs the cycle on its own thread, and watches it until it is over.
    pub(super) fn run(
        &self,
        robot: &Robot,
        own: Option<Own<'_>>,
        mut main_device: MainDevice,
        mut link: RobotLink,
        file: Option<recorder::NewFile>,
        live: &mut LiveLine,
    ) -> Result<Ran, Failure> {
        let mut explainer = self.explain.start(robot)?;
        if let Some(why) = explainer.as_ref().and_then(Explainer::trace_is_missing) {
            live.say(&format!("late beats are explained by counters only: {why}"));
        }
        let open = self.open_seam(robot, own.is_some())?;
        let (seam, door, ports, devices) = match open {
            Seamed::Open(open) => (Some(open.seam), Ok(open.door), Some(open.ports), Some(open.devices)),
            Seamed::Closed(why) => (None, Err(why), None, None),
        };
        let controller = match own {
            Some(own) => own(robot, ports),
            None => Box::new(controller::controllers(robot, ports)?),
        };
        let mut pump = Pump {
            main_device: &mut main_device,
            link: &mut link,
            clock: &MonotonicClock,
            stop: stop::flag(),
        };
        bring_up(&mut pump, &self.wire, |told| live.say(told))?;
        unwatched(pump.main_device.sub_devices()).iter().for_each(|line| live.say(line));
        let remarks = pump.main_device.sub_devices().iter().flat_map(SubDevice::remarks);
        remarks.for_each(|remark| live.say(&remark));
        let (axes, beat_numbers) = (axes::axes(robot), axes::beat_numbers(robot));
        let interlocks = axes::interlocks(robot);
        let checked = axis::check(&axes, pump.main_device).map_err(Failure::from);
        let checked =
            checked.and(beat_number::check(&beat_numbers, pump.main_device).map_err(Failure::from));
        let checked = checked.and(interlock::check(&interlocks, pump.main_device).map_err(Failure::from));
        if let Err(failure) = checked {
            pump.take_down()?;
            return Err(failure);
        }
        match &door {
            Ok(door) => live.say(&format!("seam {}", door.path().display())),
            Err(Some(why)) => live.say(&format!("no other program can attach: {why}")),
            Err(None) => {}
        }
        let beside = devices.filter(|_| !robot.peripherals.is_empty()).zip(door.as_ref().ok());
        let beside = beside.map(|(devices, door)| Beside::start(devices, door.path())).transpose()?;
        if let Some(beside) = &beside {
            beside.refusals().iter().for_each(|refusal| live.say(refusal));
        } else if !robot.peripherals.is_empty() {
            live.say("no devices beside the bus: their tasks are joined over the seam, and there is none");
        }
        let bus = Bus::of(&main_device, self.link());
        let (cycle, observer) = Cycle::new(
            main_device,
            link,
            MonotonicClock,
            &axes,
            controller,
            CycleConfiguration {
                period: robot.cycle.period,
                order: match robot.cycle.frame_order {
                    robot::FrameOrder::ReplyOfLastBeat => FrameOrder::ReplyOfLastBeat,
                    robot::FrameOrder::WaitForReply => FrameOrder::WaitForReply,
                },
                // The watch stops it, once it has measured them.
                beats: None,
                loss: robot.cycle.loss_time,
                overrun: profile::overrun(&robot.cycle),
            },
        )?;
        let cycle = cycle.with_beat_numbers(&beat_numbers)?.with_interlocks(&interlocks)?;
        let cycle = match seam {
            Some(seam) => cycle.with_seam(seam),
            None => cycle,
        };
        let profile = profile::profile(&robot.cycle);
        let stop = StopHandle::new();
        let (tell_thread, told_thread) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let stop = &stop;
            let thread =
                thread::Builder::new().name("cycle".to_owned()).spawn_scoped(scope, move || {
                    // Nobody listens any more only if the watch has panicked.
                    let _ = tell_thread.send(rustix::thread::gettid().as_raw_nonzero().get());
                    let granted = profile.apply();
                    let cycle = cycle.with_spin(granted.spin_margin());
                    let _ = tell.send(granted.grants().clone());
                    let ended = cycle.run(stop);
                    (ended, granted.release())
                })?;
            let thread_number = told_thread.recv();
            if let (Some(explainer), Ok(number)) = (&mut explainer, &thread_number) {
                explainer.follow(*number);
            }
            // The first thing the thread does; nothing comes only if it has panicked, which `join` tells.
            let granted = told.recv();
            let conditions = granted.as_ref().map(|granted| outcome::conditions(robot, granted, bus));
            let recorder = file.zip(conditions.as_ref().ok());
            let recorder =
                recorder.map(|(file, conditions)| Recorder::begin(file, conditions, robot.cycle.period));
            let teller = door
                .ok()
                .zip(conditions.as_ref().ok())
                .map(|(door, conditions)| Teller::new(door, conditions));
            let disturbances = match (&thread_number, &granted) {
                (Ok(number), Ok(granted)) => self.watch_disturbances(*number, robot, granted)?,
                _ => None,
            };
            let beside_it = beside.as_ref().map(Beside::tasks).unwrap_or_default();
            let tasks = Tasks::new(thread_number.unwrap_or_default(), beside_it, disturbances);
            let watch = Watch::new(robot, observer, self.limit(robot), recorder, tasks).told_by(teller);
            let watch =
                watch.explained_by(explainer).ended_by_overrun(robot.cycle.overrun == Overrun::Stop);
            let (measured, recorder) = watch_over(watch, stop, live, beside.as_ref());
            let (ended, not_put_back) =
                thread.join().map_err(|_| Failure::new("the cycle's thread panicked"))?;
            not_put_back.iter().for_each(|failure| live.say(failure));
            tell_disturbances(&measured.disturbances, live);
            let recorded = recorder.map(|recorder| recorder.finish(&measured.summary));
            Ok(Ran {
                measured,
                conditions: conditions.map_err(Clone::clone)?,
                granted: granted?,
                recorded,
                ended,
            })
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
        if self.wire.capture.is_some() {
            // The thread that writes the file is woken up.
            expected.push("futex");
        }
        let times = (robot.cycle.period, granted.spin_margin());
        Ok(Some(CycleWatch::start(detail, thread, times, &expected)?))
    }

    /// Opens the seam, unless nobody wants it.
    fn open_seam(&self, robot: &Robot, own: bool) -> Result<Seamed, Failure> {
        if self.no_seam {
            return Ok(Seamed::Closed(None));
        }
        let mover = if own { Mover::Own } else { Mover::Controllers };
        let opened = door::open(robot, self.seam.as_deref(), mover, &self.devices(robot))?;
        Ok(opened.map_or_else(|why| Seamed::Closed(Some(why)), |open| Seamed::Open(Box::new(open))))
    }

    /// The devices beside the bus: simulated where the bus is.
    fn devices(&self, robot: &Robot) -> Vec<devices::Peripheral> {
        peripherals::peripherals(robot, self.wire.iface.is_none())
    }

    /// The wire's name for people.
    fn link(&self) -> String {
        self.wire.iface.as_ref().map_or("simulated".to_owned(), |nic| format!("{nic} (AF_PACKET)"))
    }
}

/// What disturbed the real-time threads, and what the means do not show, each once.
fn tell_disturbances(found: &[Disturbances], live: &mut LiveLine) {
    found.iter().for_each(|found| live.say(&tasks::in_words(found)));
    let missing: BTreeSet<&str> = found.iter().flat_map(|it| &it.missing).map(String::as_str).collect();
    missing.iter().for_each(|missing| live.say(missing));
}

/// Whether others can attach.
enum Seamed {
    Open(Box<Open>),
    /// Why not; `None` where nobody is wanted.
    Closed(Option<String>),
}

/// Looks until the cycle is over; ends the measurement when it is long enough or the user asks.
fn watch_over(
    mut watch: Watch,
    stop: &StopHandle,
    live: &mut LiveLine,
    beside: Option<&Beside>,
) -> (Measured, Option<Recorder>) {
    while !watch.is_over() {
        thread::sleep(watch::LOOK_EVERY);
        watch.look(live);
        if let Some(beside) = beside {
            beside.look(live);
        }
        if watch.has_enough() || watch.has_overrun() || stop::asked() {
            watch.freeze();
            stop.stop();
        }
    }
    watch.look(live);
    live.finish();
    watch.measured()
}

/// A run that is over.
pub(super) struct Ran {
    pub(super) measured: Measured,
    pub(super) conditions: RunConditions,
    pub(super) granted: Grants,
    /// The recording, if one was asked for: a sentence on it, or why it is not whole.
    pub(super) recorded: Option<Result<String, Failure>>,
    pub(super) ended: Ended<RobotLink>,
}
