//! `onbeat measure wakeup`.

use std::time::Duration;

use clap::Args;

use super::Common;
use super::time;
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Wakeup {
    /// Time from release to release, in whole microseconds
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    period: Duration,

    /// Cycles of each contender
    #[arg(long, value_name = "COUNT", default_value = "30000", value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    samples: u64,

    /// Turns of each contender: ours, cyclictest, ours with S, ours, ...
    #[arg(long, value_name = "COUNT", default_value = "10", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rounds: u64,

    /// SCHED_FIFO priority of all
    #[arg(long, value_name = "1-99", default_value = "80", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: u8,

    /// CPU of the measuring threads; without it the last one this process may use
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    /// Time before a release at which the spinning sleep wakes up
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "50us")]
    spin_margin: Duration,

    #[command(flatten)]
    common: Common,
}

impl Wakeup {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::wakeup::Wakeup {
            period: self.period,
            samples: self.samples,
            rounds: self.rounds,
            priority: self.priority,
            cpu: self.cpu.unwrap_or_else(onbeat_experiments::thread::default_cpu),
            spin_margin: self.spin_margin,
        };
        self.common.conduct("wakeup", |context| experiment.run(context))
    }
}
