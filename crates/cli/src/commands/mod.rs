//! The commands, one file each.

mod simulate;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Answer as a robot's SubDevices on a network interface, for any MainDevice
    Simulate(simulate::Simulate),
}

impl Command {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Simulate(simulate) => simulate.execute(),
        }
    }
}
