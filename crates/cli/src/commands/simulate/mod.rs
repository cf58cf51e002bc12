//! `onbeat simulate`: the robot's SubDevices on a network interface.

mod probe;
mod record;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use control::profile::RealTimeProfile;
use control::serve::Server;

use crate::arguments::time;
use crate::compose::{profile, robot_file, segment};
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::words::sub_device_count;
use record::FrameRecorder;

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

    /// Record every process data frame with its kernel time stamp, to judge any MainDevice's timing from outside
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Period of the MainDevice, where the robot file has another; only --record notes it
    #[arg(long, value_name = "TIME", value_parser = time, requires = "record")]
    period: Option<Duration>,

    /// Stop when the process that started this one is gone: for scripts and supervisors
    #[arg(long)]
    with_parent: bool,

    /// CPU to answer on: another one than the MainDevice's, where both are on one machine
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
}

impl Simulate {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if self.with_parent {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT))?;
        }
        let robot = robot_file::robot(self.robot.as_deref(), self.period)?;
        let mut segment = segment::segment(&robot)?;
        let server = Server::open(&self.iface)?;
        let stop = Stop::listen()?;
        if let Some(duration) = self.duration {
            stop.after(duration);
        }
        let record = self.record.as_deref();
        let mut recorder = record
            .map(|path| FrameRecorder::create(path, &robot, &segment, &self.iface, stop.handle().clone()))
            .transpose()?;
        // SubDevices answer on time, whatever else the machine does; so these get the cycle's priority.
        let scheduling = profile::simulated(&robot);
        let profile = RealTimeProfile { scheduling, cpu: self.cpu, ..RealTimeProfile::ORDINARY };
        let granted = profile.apply();
        let found = sub_device_count(robot.bus.sub_devices.len());
        output::say(format_args!("{}: {found} on {}, {granted}; Ctrl-C stops", robot.name, self.iface));
        let served = match &mut recorder {
            None => server.run(&mut segment, stop.flag())?,
            Some(recorder) => {
                server.run_watched(&mut segment, stop.flag(), &mut |segment, arrival, frame| {
                    recorder.watch(segment, arrival, frame);
                })?
            }
        };
        output::say(format_args!(
            "{} frames received, {} returned, {} refused by the interface",
            served.received, served.returned, served.refused
        ));
        if let Some(recorder) = recorder {
            output::say(recorder.finish(served)?);
        }
        Ok(())
    }
}
