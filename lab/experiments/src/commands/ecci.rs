//! `onbeat measure ecci`, and its controller process, `onbeat-measure answer`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;
use onbeat_experiments::ecci::{Answering, READY};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{Common, Thread, turn};

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

#[derive(Args, Debug)]
pub(crate) struct Answer {
    /// Socket of the cycle
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,

    /// SCHED_FIFO priority; without it an ordinary process
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,
}

impl Answer {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::KILL))?;
        }
        let stop = Stop::listen()?;
        let answering = Answering::begin(&self.socket, self.priority)?;
        let mut told = String::new();
        for refusal in answering.refusals() {
            let _ = writeln!(told, "{refusal}");
        }
        output::print(format!("{told}{READY}\n"))?;
        let mut stamps = String::new();
        for instant in answering.serve(stop.flag()) {
            let _ = writeln!(stamps, "{}", instant.as_nanos());
        }
        output::print(stamps)
    }
}
