//! Costs: `onbeat measure ipc`, `xddp` and `cost`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use cli::failure::Failure;
use onbeat_experiments::cost;

use super::{Cells, Common, Cpu, Thread, lasting, turn};

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
