//! `onbeat run`: a robot's cycle.

mod explain;
mod hold;
mod outcome;
mod recorder;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use blame::Explainer;
use clap::{Args, ValueEnum};
use ethercat::al::AlState;
use ethercat::main_device::MainDevice;
use robot::{Overrun, Robot};
use runtime::axis;
use runtime::bring_up::Pump;
use runtime::clock::MonotonicClock;
use runtime::cycle::{Cycle, CycleConfiguration, Ended, FrameOrder};
use runtime::profile::Grants;
use timing::RunConditions;

use crate::arguments::{Wire, time};
use crate::bus::BRING_UP_PATIENCE;
use crate::compose::link::RobotLink;
use crate::compose::{axes, configuration, controller, link, profile, robot_file};
use crate::failure::Failure;
use crate::stop;
use crate::words::live_line::LiveLine;
use hold::{Hold, OverrunOutcome};
use outcome::{Bus, Outcome};
use recorder::Recorder;
use watch::{Measured, Watch};

#[derive(Args, Debug)]
pub(crate) struct Run {
    /// Robot file; without one the built-in six servo axes
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Stop after this time in Op; without it and --cycles Ctrl-C stops
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with = "cycles")]
    duration: Option<Duration>,

    /// Stop after this many cycles in Op
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    cycles: Option<u64>,

    /// Run at this period instead of the robot file's
    #[arg(long, value_name = "TIME", value_parser = time)]
    period: Option<Duration>,

    /// Which reply a beat works with, instead of the robot file's
    #[arg(long, value_enum, value_name = "ORDER")]
    frame_order: Option<Order>,

    /// End with one JSON object instead of the table
    #[arg(long)]
    json: bool,

    /// Write every measured beat to this file, for `onbeat report` and `onbeat analyse`
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Stop when the process that started this one is gone (experiments run their columns so)
    #[arg(long, hide = true)]
    with_parent: bool,

    #[command(flatten)]
    hold: Hold,

    #[command(flatten)]
    explain: explain::Explain,

    #[command(flatten)]
    wire: Wire,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Order {
    /// Take the reply to the last beat's frames, never wait
    ReplyOfLastBeat,
    /// Send, then wait for this beat's own reply
    WaitForReply,
}

impl Run {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT))?;
        }
        let robot = self.robot()?;
        hold::restore_crashed();
        let file = self.record.as_deref().map(recorder::create).transpose()?;
        let main_device = MainDevice::new(configuration::configuration(&robot, AlState::Op))?;
        let link = link::open(&robot, &self.wire)?;
        stop::listen()?;
        let mut live = LiveLine::new();
        let ran = self.run(&robot, main_device, link, file, &mut live)?;
        let captured = ran.ended.link.finish()?;
        if let Some(error) = ran.ended.failure {
            return Err(Failure::new(error));
        }
        let overrun =
            OverrunOutcome::of(robot.cycle.overrun, ran.ended.overruns, ran.ended.stopped_by_overrun);
        let outcome = Outcome::new(&robot, &ran.measured, ran.conditions, &ran.granted, overrun);
        if self.json {
            println!("{}", outcome.json()?);
        } else {
            print!("{}", outcome.table());
        }
        if let Some(captured) = captured {
            live.say(&captured);
        }
        if let Some(recorded) = ran.recorded.transpose()? {
            live.say(&recorded);
        }
        if let Some(explanation) = &ran.measured.explanation {
            if let Some(exported) = self.explain.export(explanation)? {
                live.say(&exported);
            }
        }
        if let Some(cycle) = ran.ended.stopped_by_overrun {
            return Err(Failure::new(format!(
                "cycle {cycle} ran past the next release, and overrun is \"stop\": the axes were brought to rest; \
                 --explain names what held it up, skip and catch-up go on"
            )));
        }
        match ran.measured.broken_beats {
            0 => Ok(()),
            beats => Err(Failure::new(format!(
                "the last {beats} beats had no whole process data, expected every working counter right on \
                 every beat: check cables and power; `onbeat scan` shows who answers"
            ))),
        }
    }

    /// The robot file's robot, with what the command line changes.
    fn robot(&self) -> Result<Robot, Failure> {
        let mut robot = robot_file::robot(self.robot.as_deref(), self.period)?;
        self.hold.change(&mut robot.cycle);
        robot.cycle.frame_order = match self.frame_order {
            None => robot.cycle.frame_order,
            Some(Order::ReplyOfLastBeat) => robot::FrameOrder::ReplyOfLastBeat,
            Some(Order::WaitForReply) => robot::FrameOrder::WaitForReply,
        };
        Ok(robot)
    }

    /// Cycles to measure; `None` until somebody asks for a stop.
    fn limit(&self, robot: &Robot) -> Option<u64> {
        let beats = |duration: Duration| {
            u64::try_from(duration.as_nanos().div_ceil(robot.cycle.period.as_nanos())).unwrap_or(u64::MAX)
        };
        self.cycles.or(self.duration.map(beats))
    }

    /// Brings the bus up, runs the cycle on its own thread, and watches it until it is over.
    fn run(
        &self,
        robot: &Robot,
        mut main_device: MainDevice,
        mut link: RobotLink,
        file: Option<recorder::NewFile>,
        live: &mut LiveLine,
    ) -> Result<Ran, Failure> {
        let mut explainer = self.explain.start(robot)?;
        if let Some(why) = explainer.as_ref().and_then(Explainer::trace_is_missing) {
            live.say(&format!("late beats are explained by counters only: {why}"));
        }
        let controller = Box::new(controller::switch(robot)?);
        let mut pump = Pump {
            main_device: &mut main_device,
            link: &mut link,
            clock: &MonotonicClock,
            stop: stop::flag(),
        };
        pump.bring_up(BRING_UP_PATIENCE, |_| ())?;
        let axes = axes::axes(robot);
        if let Err(error) = axis::check(&axes, pump.main_device) {
            pump.take_down()?;
            return Err(error.into());
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
                overrun: profile::overrun(&robot.cycle),
            },
        )?;
        let cycle = cycle.with_beat_numbers(&axes::beat_numbers(robot))?;
        let profile = profile::profile(&robot.cycle);
        let stop = AtomicBool::new(false);
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
            if let (Some(explainer), Ok(thread)) = (&mut explainer, told_thread.recv()) {
                explainer.follow(thread);
            }
            // The first thing the thread does; nothing comes only if it has panicked, which `join` tells.
            let granted = told.recv();
            let conditions = granted.as_ref().map(|granted| outcome::conditions(robot, granted, bus));
            let recorder = file.zip(conditions.as_ref().ok());
            let recorder =
                recorder.map(|(file, conditions)| Recorder::begin(file, conditions, robot.cycle.period));
            let watch = Watch::new(robot, observer, self.limit(robot), recorder);
            let watch =
                watch.explained_by(explainer).ended_by_overrun(robot.cycle.overrun == Overrun::Stop);
            let (measured, recorder) = watch_over(watch, stop, live);
            let (ended, not_put_back) =
                thread.join().map_err(|_| Failure::new("the cycle's thread panicked"))?;
            not_put_back.iter().for_each(|failure| live.say(failure));
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

    /// The wire's name for people.
    fn link(&self) -> String {
        self.wire.iface.as_ref().map_or("simulated".to_owned(), |nic| format!("{nic} (AF_PACKET)"))
    }
}

/// Looks until the cycle is over; ends the measurement when it is long enough or the user asks.
fn watch_over(mut watch: Watch, stop: &AtomicBool, live: &mut LiveLine) -> (Measured, Option<Recorder>) {
    while !watch.is_over() {
        thread::sleep(watch::LOOK_EVERY);
        watch.look(live);
        if watch.has_enough() || watch.has_overrun() || stop::asked() {
            watch.freeze();
            // Relaxed: nothing but the flag itself is passed through it.
            stop.store(true, Ordering::Relaxed);
        }
    }
    watch.look(live);
    live.finish();
    watch.measured()
}

/// A run that is over.
struct Ran {
    measured: Measured,
    conditions: RunConditions,
    granted: Grants,
    /// The recording, if one was asked for: a sentence on it, or why it is not whole.
    recorded: Option<Result<String, Failure>>,
    ended: Ended<RobotLink>,
}
