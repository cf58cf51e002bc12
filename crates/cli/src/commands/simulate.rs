//! `onbeat simulate`: the robot's SubDevices on a network interface.

mod faults;
mod probe;
mod record;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ethercat_linux::link::RingError;
use ethercat_linux::serve::Server;
use onbeat::Error;
use onbeat::compose::segment;
use onbeat::compose::sii_files::SiiFiles;
use onbeat::fault::{self, FaultySegment, script};
use robot::{Overrides, RobotConfig};
use rt::profile::{Granted, RealTimeProfile};

use crate::arguments::{check_cpu, lasting, time};
use crate::failure::Failure;
use crate::output;
use crate::stop::Stop;
use crate::words::sub_device_count;
use faults::OnDemand;
use record::FrameRecorder;

#[derive(Args, Debug)]
pub(crate) struct Simulate {
    /// Robot file; without one the built-in six servo axes
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Answer on this network interface (needs CAP_NET_RAW)
    #[arg(long, value_name = "NIC")]
    iface: String,

    /// Answer on this one, too: the other end of a ring, to which the last OUT leads
    #[arg(long, value_name = "NIC", conflicts_with = "record")]
    second_iface: Option<String>,

    /// Stop after this time; without it Ctrl-C stops
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    duration: Option<Duration>,

    /// Record every process data frame with its kernel time stamp, to measure any MainDevice's
    /// timing; of existing files only a recording is replaced
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Period of the MainDevice, where the robot file has another; only --record notes it
    #[arg(long, value_name = "TIME", value_parser = time, requires = "record")]
    period: Option<Duration>,

    /// Have faults take place: a script with a line for each, as `1.5s power off drive-3 for 500ms`
    #[arg(long, value_name = "FILE")]
    faults: Option<PathBuf>,

    /// Name by which `onbeat fault` finds it; without it the robot's
    #[arg(long, value_name = "NAME")]
    control: Option<String>,

    /// Folder for SIIs, one file for each SubDevice: writes to an SII survive a restart
    #[arg(long, value_name = "FOLDER")]
    sii: Option<PathBuf>,

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
        check_cpu("--cpu", self.cpu)?;
        let overrides = Overrides { period: self.period, ..Overrides::default() };
        let mut robot = RobotConfig::read_or_built_in(self.robot.as_deref(), overrides)?;
        robot.bus.ring |= self.second_iface.is_some();
        let files = self.sii.as_deref().map(SiiFiles::open).transpose().map_err(Error::from)?;
        let mut segment = segment::segment_keeping(&robot, files.as_ref())?;
        let targets = fault::targets(&robot, &mut segment);
        let script = self.faults.as_deref().map(|path| script::read(path, &targets)).transpose()?;
        let mut server = match &self.second_iface {
            None => Server::open(&self.iface)?,
            Some(second) if *second == self.iface => {
                return Err(Failure::from(RingError::SameInterface { interface: second.clone() }));
            }
            Some(second) => Server::open_ring(&self.iface, second)?,
        };
        server.on_overload(|| output::say_beside(OVERLOAD.to_owned()));
        let stop = Stop::listen()?;
        if let Some(duration) = self.duration {
            stop.after(duration);
        }
        let script = script.unwrap_or_default();
        let (mut segment, handle) = FaultySegment::new(segment, server.faults(), &script);
        let on_demand = OnDemand::begin(&robot, self.control.as_deref(), &mut segment, &handle, &targets)?;
        // Last, as it takes the place of an earlier recording.
        let record = self.record.as_deref();
        let create = |path| {
            FrameRecorder::create(path, &robot, segment.segment(), &self.iface, stop.handle().clone())
        };
        let mut recorder = record.map(create).transpose()?;
        // SubDevices must answer on time under any load: these threads get the cycle's priority.
        let scheduling = segment::scheduling(&robot);
        let profile = RealTimeProfile { scheduling, cpu: self.cpu, ..RealTimeProfile::ORDINARY };
        let granted = Granted::ask(&profile);
        let found = sub_device_count(robot.bus.sub_devices.len());
        let second =
            self.second_iface.as_ref().map_or(String::new(), |second| format!(" and {second}, a ring"));
        output::say(format_args!(
            "{}: {found} on {}{second}, {granted}; Ctrl-C stops",
            robot.name, self.iface
        ));
        let served = match &mut recorder {
            None => server.run(&mut segment, stop.flag())?,
            Some(recorder) => {
                server.run_watched(&mut segment, stop.flag(), &mut |segment, arrival, frame| {
                    recorder.watch(segment.segment(), arrival, frame);
                })?
            }
        };
        drop(segment);
        on_demand.finish();
        if let Some(files) = files {
            files.finish().map_err(Error::from)?;
        }
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

/// Said once the simulation does not keep up.
const OVERLOAD: &str = "this computer is too slow to simulate so many SubDevices: replies are late, and the MainDevice \
     loses frames. Cables and power are not the cause. Simulate fewer SubDevices, or use a faster computer";
