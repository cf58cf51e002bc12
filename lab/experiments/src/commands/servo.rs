//! `onbeat measure servo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::Cells;
use super::{lasting, time};
use cli::failure::Failure;

#[derive(Args, Debug)]
pub(crate) struct Servo {
    /// Robot file; without one the built-in six servo drives
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Time cycles are measured; the paper's 60 s by default
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "60s")]
    duration: Duration,

    /// Run at this period instead of the robot file's
    #[arg(long, value_name = "TIME", value_parser = time)]
    period: Option<Duration>,

    /// Requests of the cycle to the system instead of the robot file's profile: letters of PMCS, or none
    #[arg(long, value_name = "PMCS|none")]
    profile: Option<onbeat_experiments::tuning::Column>,

    /// SCHED_FIFO priority instead of the robot file's
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// CPU for the cycle instead of the robot file's
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    #[command(flatten)]
    cells: Cells,
}

impl Servo {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let mut options = Vec::new();
        let given = [
            ("--profile", self.profile.map(onbeat_experiments::tuning::Column::profile)),
            ("--priority", self.priority.map(|it| it.to_string())),
            ("--cpu", self.cpu.map(|it| it.to_string())),
        ];
        for (name, value) in given {
            options.extend(value.into_iter().flat_map(|value| [name.into(), value.into()]));
        }
        let experiment = onbeat_experiments::servo::Servo {
            robot: self.robot,
            period: self.period,
            duration: self.duration,
            options,
        };
        self.cells.conduct("servo", |context| experiment.run(context))
    }
}
