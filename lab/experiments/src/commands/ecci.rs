//! `onbeat measure ecci`.

use std::time::Duration;

use clap::Args;

use super::{Common, Thread, turn};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Ecci {
    /// Requests of each cell in each of its two passes; 99.99 % needs 10000 of both together
    #[arg(long, value_name = "COUNT", default_value = "20000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,

    /// Parts each pass is cut into, so that all cells take turns
    #[arg(long, value_name = "COUNT", default_value = "4", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Time from one request to the next
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "250us")]
    interval: Duration,

    /// Axes of the state
    #[arg(long, value_name = "COUNT", default_value = "59", value_parser = clap::value_parser!(u16).range(1..=1000))]
    axes: u16,

    #[command(flatten)]
    thread: Thread,

    #[command(flatten)]
    common: Common,
}

impl Ecci {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::ecci::Ecci {
            samples: self.samples as usize,
            rounds: self.rounds.into(),
            interval: self.interval,
            axes: self.axes.into(),
            priority: self.thread.priority,
            cpu: self.thread.cpu.number(),
        };
        self.common.conduct("ecci", |context| experiment.run(context))
    }
}
