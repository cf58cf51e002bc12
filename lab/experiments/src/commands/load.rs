//! `onbeat-measure load`: one load of an experiment, in a separate process. Experiments and users
//! start it.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use clap::builder::PossibleValuesParser;
use rustix::process::{Signal, set_parent_process_death_signal};

use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

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
