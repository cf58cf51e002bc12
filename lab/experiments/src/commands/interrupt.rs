//! `onbeat measure interrupt`.

use std::time::Duration;

use clap::Args;
use onbeat_experiments::interrupt::{Condition, Line};

use super::{Common, Thread, turn};
use cli::failure::Failure;

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

    /// Send frames on this interface and wait for them to come back from SubDevices; without it a private cable is made
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

    /// Stamp the edges of this GPIO line, which is wired to the one that answers: from edge in to edge out
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
