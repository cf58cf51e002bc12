//! `onbeat measure tasks`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use onbeat_experiments::tasks::{self, Busy};

use super::{Cells, Cpu, lasting};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    /// A task set as `onbeat analyse` reads them (TOML), or one of the papers': controllers, service-robot
    #[arg(value_name = "TASKS.toml|NAME", default_value = "controllers")]
    set: String,

    /// Time the tasks run, in each way to be busy
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    /// Way in which jobs are busy
    #[arg(long, value_name = "HOW", default_value = "both")]
    busy: How,

    #[command(flatten)]
    cpu: Cpu,

    #[command(flatten)]
    cells: Cells,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// In blocks of elapsed time, as the paper spins
    Blocks,
    /// Until their own thread has used so much processor time
    ProcessorTime,
    /// One after the other
    Both,
}

impl Tasks {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let named = tasks::Tasks::named(&self.set).map_err(|error| Failure::new(error.to_string()))?;
        let experiment = tasks::Tasks {
            duration: self.duration,
            cpu: self.cpu.number(),
            busy: match self.busy {
                How::Blocks => vec![Busy::Blocks],
                How::ProcessorTime => vec![Busy::ProcessorTime],
                How::Both => Busy::ALL.to_vec(),
            },
            ..named
        };
        self.cells.conduct("tasks", |context| experiment.run(context))
    }
}
