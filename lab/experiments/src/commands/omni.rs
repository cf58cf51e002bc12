//! `onbeat measure omni`.

use std::path::PathBuf;

use clap::Args;
use motion::{MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared};

use onbeat_experiments::convolution::PathLimits;

use super::Common;
use cli::failure::Failure;

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
