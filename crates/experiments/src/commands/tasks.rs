//! `onbeat measure tasks`.

use std::time::Duration;

use clap::Args;

use super::Common;
use super::time;
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Tasks {
    /// Time the tasks run
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "20s")]
    duration: Duration,

    /// CPU of both tasks; without it the last one this process may use
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    #[command(flatten)]
    common: Common,
}

impl Tasks {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::tasks::Tasks {
            duration: self.duration,
            cpu: self.cpu.unwrap_or_else(onbeat_experiments::thread::default_cpu),
            ..onbeat_experiments::tasks::Tasks::default()
        };
        self.common.conduct("tasks", |context| experiment.run(context))
    }
}
