//! `onbeat pilot`: who drives in `onbeat measure navigation`, which starts it in processes of its own.

use std::env;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use measure::Context;
use measure::navigation::Course;
use measure::navigation::pilot::{self, AllInOne};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::run::Run;
use crate::compose::controller;
use crate::failure::Failure;
use crate::stop;
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
        let pilot = pilot::Pilot::begin(&self.drive.context()?, &self.drive.log, self.drive.course)?;
        let controller = AllInOne::new(controller, pilot, robot.axes.len());
        let finished =
            self.run.finish(Some(Box::new(|_, _| Box::new(controller))), &mut LiveLine::new())?;
        println!("{}", finished.json);
        finished.verdict
    }
}

impl Outside {
    fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::INT))?;
        }
        stop::listen()?;
        let drive = &self.drive;
        pilot::drive(&drive.context()?, &self.seam, &drive.log, drive.course, self.only_log)?;
        Ok(())
    }
}

impl Drive {
    fn context(&self) -> Result<Context<'static>, Failure> {
        Ok(Context {
            directory: self.directory.clone(),
            onbeat: env::current_exe()?,
            stop: stop::flag(),
            say: &|line| eprintln!("{line}"),
        })
    }
}

fn course(text: &str) -> Result<Course, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
