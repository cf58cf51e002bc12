//! `onbeat run`: a robot's cycle.

mod outcome;
mod watch;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use ethercat::al::AlState;
use ethercat::main_device::MainDevice;
use robot::Robot;
use runtime::axis;
use runtime::bring_up::Pump;
use runtime::clock::MonotonicClock;
use runtime::cycle::{Cycle, CycleConfiguration, Ended, FrameOrder};
use runtime::observer::Observer;
use runtime::profile::{Granted, RealTimeProfile};

use crate::arguments::{Wire, time};
use crate::bus::BRING_UP_PATIENCE;
use crate::compose::link::RobotLink;
use crate::compose::{axes, configuration, controller, link, robot_file};
use crate::failure::Failure;
use crate::stop;
use crate::words::live_line::LiveLine;
use outcome::Outcome;
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

    /// SCHED_FIFO priority instead of the robot file's
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// CPU for the cycle instead of the robot file's
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Which reply a beat works with, instead of the robot file's
    #[arg(long, value_enum, value_name = "ORDER")]
    frame_order: Option<Order>,

    /// End with one JSON object instead of the table
    #[arg(long)]
    json: bool,

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
        let robot = self.robot()?;
        let main_device = MainDevice::new(configuration::configuration(&robot, AlState::Op))?;
        let link = link::open(&robot, &self.wire)?;
        stop::listen()?;
        let mut live = LiveLine::new();
        let ran = self.run(&robot, main_device, link, &mut live)?;
        let captured = ran.ended.link.finish()?;
        if let Some(error) = ran.ended.failure {
            return Err(Failure::new(error));
        }
        let link =
            self.wire.iface.clone().map_or("simulated".to_owned(), |nic| format!("{nic} (AF_PACKET)"));
        let outcome = Outcome::new(&robot, &ran.measured, &ran.granted, &ran.ended.main_device, link);
        if self.json {
            println!("{}", outcome.json()?);
        } else {
            print!("{}", outcome.table());
        }
        if let Some(captured) = captured {
            live.say(&captured);
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
        robot.cycle.priority = self.priority.or(robot.cycle.priority);
        robot.cycle.cpu = self.cpu.or(robot.cycle.cpu);
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
        live: &mut LiveLine,
    ) -> Result<Ran, Failure> {
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
        let (cycle, observer) = Cycle::new(
            main_device,
            link,
            MonotonicClock,
            &axes,
            controller::controller(robot),
            CycleConfiguration {
                period: robot.cycle.period,
                order: match robot.cycle.frame_order {
                    robot::FrameOrder::ReplyOfLastBeat => FrameOrder::ReplyOfLastBeat,
                    robot::FrameOrder::WaitForReply => FrameOrder::WaitForReply,
                },
                // The watch stops it, once it has measured them.
                beats: None,
            },
        )?;
        let cycle = cycle.with_beat_numbers(&axes::beat_numbers(robot))?;
        let profile = RealTimeProfile {
            priority: robot.cycle.priority,
            lock_memory: robot.cycle.memory_lock,
            cpu: robot.cycle.cpu,
            ..RealTimeProfile::default()
        };
        let stop = AtomicBool::new(false);
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let stop = &stop;
            let thread =
                thread::Builder::new().name("cycle".to_owned()).spawn_scoped(scope, move || {
                    // Nobody listens any more only if the watch has panicked.
                    let _ = tell.send(profile.apply());
                    cycle.run(stop)
                })?;
            let measured = self.watch(robot, observer, stop, live);
            let ended = thread.join().map_err(|_| Failure::new("the cycle's thread panicked"))?;
            let granted = told.recv()?;
            Ok(Ran { measured, granted, ended })
        })
    }

    fn watch(&self, robot: &Robot, observer: Observer, stop: &AtomicBool, live: &mut LiveLine) -> Measured {
        let mut watch = Watch::new(robot, observer, self.limit(robot));
        while !watch.is_over() {
            thread::sleep(watch::LOOK_EVERY);
            watch.look(live);
            if watch.has_enough() || stop::asked() {
                watch.freeze();
                // Relaxed: nothing but the flag itself is passed through it.
                stop.store(true, Ordering::Relaxed);
            }
        }
        watch.look(live);
        live.finish();
        watch.measured()
    }
}

/// A run that is over.
struct Ran {
    measured: Measured,
    granted: Granted,
    ended: Ended<RobotLink>,
}
