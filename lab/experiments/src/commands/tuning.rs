//! Cycles: `onbeat measure tuning` and `servo`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cli::failure::Failure;
use onbeat_experiments::tuning::{Background, Column};

use super::{Cells, lasting, time};

#[derive(Args, Debug)]
pub(crate) struct Tuning {
    /// Combinations of tunings, parted by commas: none, or letters of P (priority), M (memory
    /// lock), C (CPU shield), S (spinning sleep)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "none,M,C,MC,P,PM,PC,PMC,PMCS"
    )]
    columns: Vec<Column>,

    /// Load of the machine: none, the paper's with its parameters, a lighter one of its kinds, or
    /// one after the other; both is none,paper
    #[arg(long, value_enum, value_name = "LOAD,...", value_delimiter = ',', default_value = "both")]
    load: Vec<Load>,

    /// Time cycles are measured for each column and load; the paper's 10min make three hours of the
    /// whole
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "30s")]
    duration: Duration,

    /// The period; the paper's 1 ms by default
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1ms")]
    period: Duration,

    /// Robot file; without one a humanoid of 59 SubDevices, simulated, as the paper's
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// SCHED_FIFO priority of the columns with P instead of the robot file's
    #[arg(long, value_name = "1-99", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// CPU for the cycle in every column; without it C takes the machine's last, the others any
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    #[command(flatten)]
    cells: Cells,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Load {
    None,
    Paper,
    Light,
    Both,
}

impl Load {
    const fn backgrounds(self) -> &'static [Background] {
        match self {
            Self::None => &[Background::None],
            Self::Paper => &[Background::Paper],
            Self::Light => &[Background::Light],
            Self::Both => &[Background::None, Background::Paper],
        }
    }
}

impl Tuning {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let priority = self.priority.map(|priority| ["--priority".into(), priority.to_string().into()]);
        let mut loads: Vec<Background> = Vec::new();
        for load in self.load.iter().flat_map(|it| it.backgrounds()) {
            if !loads.contains(load) {
                loads.push(*load);
            }
        }
        let experiment = onbeat_experiments::tuning::Tuning {
            columns: self.columns,
            loads,
            duration: self.duration,
            period: self.period,
            robot: self.robot,
            cpu: self.cpu,
            options: priority.into_iter().flatten().collect(),
        };
        self.cells.conduct("tuning", |context| experiment.run(context))
    }
}

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

    /// Requests of the cycle to the system instead of the robot file's profile: letters of PMCS, or
    /// none
    #[arg(long, value_name = "PMCS|none")]
    profile: Option<Column>,

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
            ("--profile", self.profile.map(Column::profile)),
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
