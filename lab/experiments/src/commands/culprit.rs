//! Loads: `onbeat-measure culprit`, to try out `onbeat run --explain`, and `load`.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;
use onbeat_experiments::culprit;
use onbeat_experiments::culprit::Culprit as Settings;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{lasting, turn};

#[derive(Args, Debug)]
pub(crate) struct Culprit {
    /// Name of its thread, at most 15 bytes
    #[arg(long, default_value = "culprit")]
    name: String,

    /// CPU it takes
    #[arg(long, default_value = "0")]
    cpu: usize,

    /// Its SCHED_FIFO priority
    #[arg(long, value_name = "1-99", default_value = "99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,

    /// Time it takes the CPU each time
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "400us")]
    busy: Duration,

    /// Mean time between two times
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "10ms")]
    every: Duration,

    /// Duration
    #[arg(long = "for", value_name = "TIME", value_parser = lasting, default_value = "10s")]
    duration: Duration,

    /// Same seed, same instants
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    seed: u64,

    /// Write down when it had the CPU: begin and end in ns of CLOCK_MONOTONIC, a line each
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

impl Culprit {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let cannot_write = |path: &PathBuf, error| Failure::new(format!("{}: {error}", path.display()));
        let log =
            self.log.as_ref().map(|path| File::create(path).map_err(|error| cannot_write(path, error)));
        let log = log.transpose()?;
        let stop = Stop::listen()?;
        let culprit = Settings {
            name: self.name,
            cpu: self.cpu,
            priority: self.priority,
            busy: self.busy,
            every: self.every,
            duration: self.duration,
            seed: self.seed,
        };
        let intervals =
            culprit.run(|| stop.is_requested()).map_err(|error| Failure::new(error.to_string()))?;
        if let (Some(file), Some(path)) = (log, &self.log) {
            culprit::write(file, &intervals).map_err(|error| cannot_write(path, error))?;
        }
        output::print(format_args!(
            "{} took CPU {} {} times for {:?}\n",
            culprit.name,
            culprit.cpu,
            intervals.len(),
            culprit.busy
        ))
    }
}

#[derive(Args, Debug)]
pub(crate) struct Load {
    /// The load
    #[arg(value_name = "LOAD", value_parser = PossibleValuesParser::new(onbeat_experiments::load::Load::all().into_iter().map(onbeat_experiments::load::Load::name)))]
    load: String,

    /// Folder of its files; they never stay. Without it the system's folder for temporary files
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,

    /// Say which GPU there is, and end
    #[arg(long)]
    find: bool,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,
}

impl Load {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.find {
            return output::print(format_args!("{}\n", onbeat_experiments::load::gpu::find()?));
        }
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        let stop = Stop::listen()?;
        let load = onbeat_experiments::load::Load::named(&self.load)
            .ok_or_else(|| Failure::new("no load of this name"))?;
        let directory = self.directory.unwrap_or_else(std::env::temp_dir);
        let begin = Instant::now();
        let done = load.run(&directory, stop.flag())?;
        output::print(format_args!("{} {} in {} s\n", done.count, done.what, begin.elapsed().as_secs_f64()))
    }
}
