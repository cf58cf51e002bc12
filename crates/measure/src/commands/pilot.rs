//! `onbeat-measure pilot`: the driver in `navigation`, which starts it in processes of its own.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};
use onbeat_measure::navigation::Course;
use onbeat_measure::navigation::pilot::{self, AllInOne};
use onbeat_measure::{Context, Programs};
use rustix::process::{Signal, set_parent_process_death_signal};

use cli::Run;
use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

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

    /// Robot file
    #[arg(value_name = "ROBOT.toml")]
    robot: PathBuf,

    /// Options of `onbeat run`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    options: Vec<String>,
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
        let controller = cli::controllers(&self.robot)?;
        let stop = AtomicBool::new(false);
        let context = self.drive.context(&stop)?;
        let pilot = pilot::Pilot::begin(&context, &self.drive.log, self.drive.course)?;
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let run = Run::of(&self.robot).option(&options);
        let (finished, verdict) =
            run.judged_with(|robot| AllInOne::new(controller, pilot, robot.axes().len()))?;
        Failure::both(
            verdict.map_err(Failure::new),
            output::print_or_give_up(
                finished.json
                    + "
",
            ),
        )
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
            programs: Programs::of_this()?,
            stop,
            say: &|line| output::say(line),
        })
    }
}

fn course(text: &str) -> Result<Course, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
