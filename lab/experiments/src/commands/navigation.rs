//! Moving robots: `onbeat measure navigation` with its process `pilot`, and `omni`.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Args, ValueEnum};
use cli::failure::Failure;
use cli::output;
use cli::stop::Stop;
use motion::{MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared};
use onbeat_experiments::convolution::PathLimits;
use onbeat_experiments::navigation::{Course, pilot};
use onbeat_experiments::{Context, Programs, Progress};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::{Common, lasting, time};

#[derive(Args, Debug)]
pub(crate) struct Navigation {
    /// Robot file of a differential drive; without it that of the example m4k.toml
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Time each of the four drives is measured
    #[arg(long, value_name = "TIME", value_parser = lasting, default_value = "20s")]
    duration: Duration,

    /// The actuator task's period: one cycle of the bus; the paper's 10 ms by default
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10ms")]
    period: Duration,

    /// Highest velocity of the planner, m/s; default: the paper's 0.25
    #[arg(long, value_name = "M/S", value_parser = velocity, default_value = "0.25")]
    velocity: f64,

    /// Planner on the other side of the shared-memory interface
    #[arg(long, value_enum, default_value = "ipc")]
    planner: Planner,

    /// The Python that has cyclonedds, for --planner dds, or rclpy, for --planner ros
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    python: PathBuf,

    /// Requests of the cycle to the system in the real-time drives, instead of the file's profile
    #[arg(long, value_name = "PMCS|none")]
    profile: Option<onbeat_experiments::tuning::Column>,

    /// CPU for the cycle in the real-time drives
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Planner {
    /// A process of ours
    Ipc,
    /// A Python program over DDS, with onbeat-ros2 between
    Dds,
    /// The same program as a node of ROS 2 (rclpy)
    Ros,
}

impl Navigation {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let mut options = Vec::new();
        let given = [
            ("--profile", self.profile.map(onbeat_experiments::tuning::Column::profile)),
            ("--cpu", self.cpu.map(|it| it.to_string())),
        ];
        for (name, value) in given {
            options.extend(value.into_iter().flat_map(|value| [name.into(), value.into()]));
        }
        let planner = match self.planner {
            Planner::Ipc => onbeat_experiments::navigation::Planner::Ipc,
            Planner::Ros => onbeat_experiments::navigation::Planner::Ros { python: self.python },
            Planner::Dds => onbeat_experiments::navigation::Planner::Dds { python: self.python },
        };
        let experiment = onbeat_experiments::navigation::Navigation {
            period: self.period,
            duration: self.duration,
            planner,
            options,
            course: Course { velocity: self.velocity, ..Course::default() },
            ..onbeat_experiments::navigation::Navigation::new(self.robot)
        };
        self.common.conduct("navigation", |context| experiment.run(context))
    }
}

fn velocity(text: &str) -> Result<f64, String> {
    let found = text.parse().ok().filter(|it: &f64| it.is_finite() && *it > 0.0);
    found.ok_or_else(|| "expected a number of m/s above 0".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct Omni {
    /// Robot file of a base on Mecanum or omni wheels; without it that of the example omni.toml
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Highest central velocity, m/s
    #[arg(long, value_name = "M/S", default_value_t = 0.5)]
    velocity: f64,

    /// Highest acceleration along the path, m/s^2
    #[arg(long, value_name = "M/S2", default_value_t = 0.5)]
    acceleration: f64,

    /// Highest jerk along the path, m/s^3
    #[arg(long, value_name = "M/S3", default_value_t = 2.0)]
    jerk: f64,

    #[command(flatten)]
    common: Common,
}

impl Omni {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let limits = PathLimits {
            velocity: MetresPerSecond(self.velocity),
            acceleration: MetresPerSecondSquared(self.acceleration),
            jerk: MetresPerSecondCubed(self.jerk),
        };
        let experiment =
            onbeat_experiments::omni::Omni { limits, ..onbeat_experiments::omni::Omni::new(self.robot) };
        self.common.conduct("omni", |context| experiment.run(context))
    }
}

#[derive(Args, Debug)]
pub(crate) struct Pilot {
    /// Name of the IPC
    #[arg(long, value_name = "NAME")]
    ipc: String,

    /// Only keep the log: another program plans
    #[arg(long)]
    only_log: bool,

    /// End when the process that started this one is gone
    #[arg(long)]
    with_parent: bool,

    /// Name of the log
    #[arg(long, value_name = "NAME")]
    log: String,

    /// File of the log
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,

    /// Course, as JSON
    #[arg(long, value_name = "JSON", value_parser = course)]
    course: Course,
}

impl Pilot {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            set_parent_process_death_signal(Some(Signal::INT))?;
        }
        let stop = Stop::listen()?;
        pilot::drive(&self.context(stop.flag())?, &self.ipc, &self.log, self.course, self.only_log)?;
        Ok(())
    }

    fn context<'a>(&self, stop: &'a AtomicBool) -> Result<Context<'a>, Failure> {
        Ok(Context {
            directory: self.directory.clone(),
            programs: Programs::of_this()?,
            stop,
            say: &|line| output::say(line),
            progress: Progress::default(),
            continues: false,
        })
    }
}

fn course(text: &str) -> Result<Course, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}
