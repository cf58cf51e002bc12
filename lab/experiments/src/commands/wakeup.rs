//! `onbeat measure wakeup`.

use std::time::Duration;

use clap::Args;

use super::{Cells, Thread, time, turn};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Wakeup {
    /// Time from release to release, in whole microseconds
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "1ms")]
    period: Duration,

    /// Cycles of each contender
    #[arg(long, value_name = "COUNT", default_value = "30000", value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    samples: u64,

    /// Turns of each contender: ours, cyclictest, ours with S, ours, ...
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rounds: u64,

    #[command(flatten)]
    thread: Thread,

    /// Time before a release at which the spinning sleep wakes up
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "50us")]
    spin_margin: Duration,

    #[command(flatten)]
    cells: Cells,
}

impl Wakeup {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::wakeup::Wakeup {
            period: self.period,
            samples: self.samples,
            rounds: self.rounds,
            priority: self.thread.priority,
            cpu: self.thread.cpu.number(),
            spin_margin: self.spin_margin,
        };
        self.cells.conduct("wakeup", |context| experiment.run(context))
    }
}
