//! `onbeat-measure answer`: the controller process of `ecci`, which starts it.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use onbeat_experiments::ecci::{Answering, READY};
use rustix::process::{Signal, set_parent_process_death_signal};

use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;

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
