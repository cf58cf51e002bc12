//! Latencies: `onbeat measure interrupt` and `wakeup`.

use std::time::Duration;

use clap::Args;
use cli::failure::Failure;
use onbeat_experiments::interrupt::{Condition, Line};

use super::{Cells, Common, Thread, time, turn};

#[derive(Args, Debug)]
pub(crate) struct Interrupt {
    /// Interrupts of each kind
    #[arg(long, value_name = "COUNT", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,

    /// Time from one to the next
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "1ms")]
    interval: Duration,

    /// Only the machine as it is, without loads
    #[arg(long)]
    idle: bool,

    #[command(flatten)]
    thread: Thread,

    /// Send frames on this interface and wait for them to come back from SubDevices; without it a
    /// private cable is made
    #[arg(long, value_name = "NIC")]
    iface: Option<String>,

    /// Wait for the edges of this GPIO line
    #[arg(long, value_name = "CHIP:LINE")]
    gpio_input: Option<Line>,

    /// Make the edges with this GPIO line, which is wired to the other
    #[arg(long, value_name = "CHIP:LINE", requires = "gpio_input")]
    gpio_output: Option<Line>,

    /// Set this GPIO line to the level of the input after each edge, as the paper's driver does
    #[arg(long, value_name = "CHIP:LINE", requires = "gpio_input")]
    gpio_answer: Option<Line>,

    /// Stamp the edges of this GPIO line, which is wired to the one that answers: from edge in to
    /// edge out
    #[arg(long, value_name = "CHIP:LINE", requires = "gpio_answer")]
    gpio_observe: Option<Line>,

    #[command(flatten)]
    common: Common,
}

impl Interrupt {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::interrupt::Interrupt {
            samples: self.samples as usize,
            interval: self.interval,
            priority: self.thread.priority,
            conditions: Condition::ALL.into_iter().filter(|it| !(self.idle && it.loaded)).collect(),
            cpu: self.thread.cpu.number(),
            interface: self.iface,
            gpio_input: self.gpio_input,
            gpio_output: self.gpio_output,
            gpio_answer: self.gpio_answer,
            gpio_observe: self.gpio_observe,
        };
        self.common.conduct("interrupt", |context| experiment.run(context))
    }
}

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
