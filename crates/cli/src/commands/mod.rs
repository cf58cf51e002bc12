//! The commands, one file each.

mod culprit;
mod load;
mod measure;
mod run;
mod scan;
mod sdo;
mod simulate;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a robot: bring up its bus, enable its axes, follow its controller, measure its timing
    Run(run::Run),
    /// Take a CPU from a cycle now and then, to try out `run --explain`
    #[command(hide = true)]
    Culprit(culprit::Culprit),
    /// Answer as a robot's SubDevices on a network interface, for any MainDevice
    Simulate(simulate::Simulate),
    /// Show who is on the bus, with identities, states and process data
    Scan(scan::Scan),
    /// Read, write and list the objects of a SubDevice
    #[command(subcommand)]
    Sdo(sdo::Sdo),
    /// Put one of the experiments' loads on this machine until it is ended
    #[command(hide = true)]
    Load(load::Load),
    /// Make a measurement as a paper made it, with its tables and plots
    #[command(subcommand)]
    Measure(measure::Measure),
}

impl Command {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        match self {
            Self::Run(run) => run.execute(),
            Self::Culprit(culprit) => culprit.execute(),
            Self::Simulate(simulate) => simulate.execute(),
            Self::Scan(scan) => scan.execute(),
            Self::Sdo(sdo) => sdo.execute(),
            Self::Load(load) => load.execute(),
            Self::Measure(measure) => measure.execute(),
        }
    }
}
