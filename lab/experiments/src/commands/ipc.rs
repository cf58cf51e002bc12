//! `onbeat measure ipc`.

use std::time::Duration;

use clap::Args;

use super::{Cells, Thread, lasting, turn};
use cli::failure::Failure;

#[derive(Args, Debug)]
#[command(mut_arg("priority", |it| {
    it.value_name("1-98")
        .value_parser(clap::value_parser!(u8).range(1..=98))
        .help("SCHED_FIFO priority of the thread that asks, and of both where they are the same")
}))]
pub(crate) struct Ipc {
    /// Round trips of each mechanism at each priority
    #[arg(long, value_name = "COUNT", default_value = "6000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,

    /// Time from one round trip to the next
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "200us")]
    interval: Duration,

    /// Parts each measurement is cut into, so that ours and the peers' take turns
    #[arg(long, value_name = "COUNT", default_value = "3", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Time for which the two tasks run with each means that they share
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "5s")]
    within: Duration,

    /// Messages of the periodic sender by each mechanism
    #[arg(long, value_name = "COUNT", default_value = "3000", value_parser = clap::value_parser!(u32).range(2..=10_000_000))]
    messages: u32,

    #[command(flatten)]
    thread: Thread,

    #[command(flatten)]
    cells: Cells,
}

impl Ipc {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::ipc::Ipc {
            samples: self.samples as usize,
            interval: self.interval,
            rounds: self.rounds.into(),
            priority: self.thread.priority,
            higher: (self.thread.priority + 10).min(99),
            within: self.within,
            messages: self.messages as usize,
            cpu: self.thread.cpu.number(),
        };
        self.cells.conduct("ipc", |context| experiment.run(context))
    }
}
