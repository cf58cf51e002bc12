//! `onbeat-measure pilot`: the driver in `navigation`, which starts it in processes of its own.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, Subcommand};
use onbeat::{Profile, RecordedSignals, Robot};
use onbeat_experiments::navigation::Course;
use onbeat_experiments::navigation::pilot::{self, AllInOne};
use onbeat_experiments::{Context, Programs, Progress};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{lasting, time};
use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

#[derive(Subcommand, Debug)]
pub(crate) enum Pilot {
    /// Within the cycle: planner, sensor, log and control in one loop
    Inside(Box<Inside>),
    /// On the other side of the IPC
    Outside(Outside),
}

#[derive(Args, Debug)]
pub(crate) struct Inside {
    #[command(flatten)]
    drive: Drive,

    /// Robot file
    #[arg(value_name = "ROBOT.toml")]
    robot: PathBuf,

    /// Period in place of the robot file's
    #[arg(long, value_name = "TIME", value_parser = time)]
    period: Duration,

    /// Stop after this time in Op
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    duration: Duration,

    /// Record every cycle to this file
    #[arg(long, value_name = "FILE")]
    record: PathBuf,

    /// End with one JSON object; it always does
    #[arg(long)]
    json: bool,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Outside {
    #[command(flatten)]
    drive: Drive,

    /// Name of the IPC
    #[arg(long, value_name = "NAME")]
    ipc: String,

    /// Only keep the log: another program plans
    #[arg(long)]
    only_log: bool,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,
}

#[derive(Args, Debug)]
struct Drive {
    /// Name of the log
    #[arg(long, value_name = "NAME")]
    log: String,

    /// File of the log
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Places to drive to, as JSON
    #[arg(long, value_name = "JSON", value_parser = course)]
    course: Course,
}

impl Pilot {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Inside(it) => it.execute(),
            Self::Outside(it) => it.execute(),
        }
    }
}

impl Inside {
    fn execute(self) -> Result<(), Failure> {
        let stop = listen(self.with_parent)?;
        let robot = Robot::load_with_period(&self.robot, self.period)?;
        let pilot =
            pilot::Pilot::begin(&self.drive.context(stop.flag())?, &self.drive.log, self.drive.course)?;
        let controller = AllInOne::new(robot.controllers()?, pilot, robot.axes().len());
        let run = robot.profile(Profile::NONE).without_ipc().stop(stop.handle());
        let run = run.record(self.record).recorded_signals(RecordedSignals::None);
        let summary = run.duration(self.duration).run(controller)?;
        let printed = output::print_or_give_up(format!("{{ \"cycles\": {} }}\n", summary.cycles()));
        let verdict = match summary.went_well() {
            true => Ok(()),
            false => Err(Failure::new(format!("{summary}: {:?}", summary.findings))),
        };
        Failure::both(verdict, printed)
    }
}

impl Outside {
    fn execute(self) -> Result<(), Failure> {
        let stop = listen(self.with_parent)?;
        let drive = &self.drive;
        pilot::drive(&drive.context(stop.flag())?, &self.ipc, &drive.log, drive.course, self.only_log)?;
        Ok(())
    }
}

/// Listens for signals; the end of the process that started this one is one of them, `with_parent`.
fn listen(with_parent: bool) -> Result<Stop, Failure> {
    if with_parent {
        set_parent_process_death_signal(Some(Signal::INT))?;
    }
    Stop::listen()
}

impl Drive {
    fn context<'a>(&self, stop: &'a AtomicBool) -> Result<Context<'a>, Failure> {
        Ok(Context {
            directory: self.directory.clone(),
            programs: Programs::of_this()?,
            stop,
            say: &|line| output::say(line),
            progress: Progress::default(),
            continues: false,
        })
    }
}

fn course(text: &str) -> Result<Course, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
