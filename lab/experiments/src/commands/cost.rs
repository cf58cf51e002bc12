//! `onbeat measure cost`.

use clap::Args;

use super::{Cells, Cpu};
use cli::failure::Failure;
use onbeat_experiments::cost;

#[derive(Args, Debug)]
pub(crate) struct Cost {
    /// Cycles of each round of a bus
    #[arg(long, value_name = "COUNT", default_value = "2000", value_parser = clap::value_parser!(u16).range(1..=cost::Cost::MOST_CYCLES as i64))]
    cycles: u16,

    /// Rounds, in which all buses take turns
    #[arg(long, value_name = "COUNT", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,

    /// Leave out buses with more SubDevices, axes or signals
    #[arg(long, value_name = "COUNT", default_value = "1000", value_parser = clap::value_parser!(u16).range(1..))]
    largest: u16,

    /// SCHED_FIFO priority of the measuring thread; without it an ordinary one
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    #[command(flatten)]
    cpu: Cpu,

    #[command(flatten)]
    cells: Cells,
}

impl Cost {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = cost::Cost {
            cycles: self.cycles.into(),
            rounds: self.rounds.into(),
            largest: self.largest.into(),
            priority: self.priority,
            cpu: self.cpu.number(),
        };
        self.cells.conduct("cost", |context| experiment.run(context))
    }
}
