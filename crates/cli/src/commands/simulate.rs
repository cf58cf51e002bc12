//! `onbeat simulate`: the robot's SubDevices on a network interface.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use runtime::profile::RealTimeProfile;
use runtime::serve::Server;

use crate::arguments::time;
use crate::compose::{robot_file, segment};
use crate::failure::Failure;
use crate::stop;

#[derive(Args, Debug)]
pub(crate) struct Simulate {
    /// Robot file; without one the built-in six servo axes
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Answer on this network interface (needs CAP_NET_RAW)
    #[arg(long, value_name = "NIC")]
    iface: String,

    /// Stop after this time; without it Ctrl-C stops
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
}

impl Simulate {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let robot = robot_file::robot(self.robot.as_deref(), None)?;
        let mut segment = segment::segment(&robot)?;
        let server = Server::open(&self.iface)?;
        stop::listen()?;
        if let Some(duration) = self.duration {
            stop::after(duration);
        }
        // SubDevices answer on time, whatever else the machine does; so these get the cycle's priority.
        let profile = RealTimeProfile { priority: robot.cycle.priority, ..RealTimeProfile::ORDINARY };
        let granted = profile.apply();
        let count = robot.bus.sub_devices.len();
        eprintln!("{}: {count} SubDevices answer on {}, {granted}; Ctrl-C stops", robot.name, self.iface);
        let served = server.run(&mut segment, stop::flag())?;
        eprintln!(
            "{} frames received, {} returned, {} refused by the interface",
            served.received, served.returned, served.refused
        );
        Ok(())
    }
}
