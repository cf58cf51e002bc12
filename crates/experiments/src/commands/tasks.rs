//! `onbeat measure tasks`.

use std::time::Duration;

use clap::Args;

use super::{Common, Cpu, lasting};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    /// Time the tasks run
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    #[command(flatten)]
    cpu: Cpu,

    #[command(flatten)]
    common: Common,
}

impl Tasks {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::tasks::Tasks {
            duration: self.duration,
            cpu: self.cpu.number(),
            ..onbeat_experiments::tasks::Tasks::default()
        };
        self.common.conduct("tasks", |context| experiment.run(context))
    }
}
