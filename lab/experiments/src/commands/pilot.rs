//! `onbeat-measure pilot`: the planner of `navigation`, which starts it as a separate process.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use onbeat_experiments::navigation::Course;
use onbeat_experiments::navigation::pilot;
use onbeat_experiments::{Context, Programs, Progress};
use rustix::process::{Signal, set_parent_process_death_signal};

use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

#[derive(Args, Debug)]
pub(crate) struct Pilot {
    /// Name of the IPC
    #[arg(long, value_name = "NAME")]
    ipc: String,

    /// Only keep the log: another program plans
    #[arg(long)]
    only_log: bool,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,

    /// Name of the log
    #[arg(long, value_name = "NAME")]
    log: String,

    /// File of the log
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Course, as JSON
    #[arg(long, value_name = "JSON", value_parser = course)]
    course: Course,
}

impl Pilot {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::INT))?;
        }
        let stop = Stop::listen()?;
        pilot::drive(&self.context(stop.flag())?, &self.ipc, &self.log, self.course, self.only_log)?;
        Ok(())
    }

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
