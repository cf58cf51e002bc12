//! `onbeat measure xddp`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{Common, Thread, turn};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Xddp {
    /// Messages of each port
    #[arg(long, value_name = "COUNT", default_value = "2000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    samples: u32,

    /// Time from one message to the next
    #[arg(long, value_name = "TIME", value_parser = turn, default_value = "1ms")]
    interval: Duration,

    /// Load parallel to the ports: a floating-point loop and copies of memory on each CPU
    #[arg(long, value_name = "LOAD", default_value = "both")]
    load: Loaded,

    /// Pause of the helper thread between two looks; 0 for none, which takes a CPU
    #[arg(long, value_name = "TIME", value_parser = robot_time, default_value = "50us")]
    helper_pause: Duration,

    #[command(flatten)]
    thread: Thread,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Loaded {
    /// The machine as it is
    None,
    /// Under load
    Stress,
    /// One after the other
    Both,
}

fn robot_time(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { turn(text) }
}

impl Xddp {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let experiment = onbeat_experiments::xddp::Xddp {
            samples: self.samples as usize,
            interval: self.interval,
            loaded: match self.load {
                Loaded::None => vec![false],
                Loaded::Stress => vec![true],
                Loaded::Both => vec![false, true],
            },
            pause: self.helper_pause,
            priority: self.thread.priority,
            cpu: self.thread.cpu.number(),
        };
        self.common.conduct("xddp", |context| experiment.run(context))
    }
}
