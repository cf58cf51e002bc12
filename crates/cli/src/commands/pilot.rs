//! `onbeat pilot`: who drives in `onbeat measure navigation`, which starts it in processes of its own.

use std::env;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use measure::Context;
use measure::navigation::Course;
use measure::navigation::pilot::{self, AllInOne};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::run::Run;
use crate::compose::controller;
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::words::live_line::LiveLine;

#[derive(Subcommand, Debug)]
pub(crate) enum Pilot {
    /// Within the cycle: planner, sensor, log and control in one loop
    Inside(Box<Inside>),
    /// On the other side of the seam
    Outside(Outside),
}

#[derive(Args, Debug)]
pub(crate) struct Inside {
    #[command(flatten)]
    drive: Drive,

    #[command(flatten)]
    run: Run,
}

#[derive(Args, Debug)]
pub(crate) struct Outside {
    #[command(flatten)]
    drive: Drive,

    /// Name of the seam
    #[arg(long, value_name = "NAME")]
    seam: String,

    /// Only keep the log: somebody else plans
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

    /// Where the log goes
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Where to drive, as JSON
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
        let robot = self.run.robot()?;
        let controller = controller::controllers(&robot, None)?;
        let pilot = pilot::Pilot::begin(
            &self.drive.context(&AtomicBool::new(false))?,
            &self.drive.log,
            self.drive.course,
        )?;
        let controller = AllInOne::new(controller, pilot, robot.axes.len());
        let finished =
            self.run.finish(Some(Box::new(|_, _| Box::new(controller))), &mut LiveLine::new())?;
        Failure::both(finished.verdict, output::print_or_give_up(finished.json + "\n"))
    }
}

impl Outside {
    fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::INT))?;
        }
        let stop = Stop::listen()?;
        let drive = &self.drive;
        pilot::drive(&drive.context(stop.flag())?, &self.seam, &drive.log, drive.course, self.only_log)?;
        Ok(())
    }
}

impl Drive {
    fn context<'a>(&self, stop: &'a AtomicBool) -> Result<Context<'a>, Failure> {
        Ok(Context {
            directory: self.directory.clone(),
            onbeat: env::current_exe()?,
            stop,
            say: &|line| output::say(line),
        })
    }
}

fn course(text: &str) -> Result<Course, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
