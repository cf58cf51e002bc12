//! In place of the devices outside the bus, for a program without them.

use std::path::Path;

use ipc::server::Builder;
use robot::RobotConfig;

use super::tasks::TaskBeside;
use crate::{Error, Reporter};

/// Devices that are not there.
pub(super) enum Beside {}

/// Devices that are not started.
pub(super) struct Devices;

/// Refuses a robot with devices.
pub(super) fn devices(robot: &RobotConfig, _: bool, _: &mut Builder) -> Result<Devices, Error> {
    if robot.peripherals.is_empty() { Ok(Devices) } else { Err(Error::NoDevices) }
}

impl Beside {
    pub(super) fn start(_: Devices, _: &Path) -> Result<Self, Error> {
        Err(Error::NoDevices)
    }

    pub(super) fn look(&self, _: &mut dyn Reporter) {}

    pub(super) fn refusals(&self) -> Vec<String> {
        Vec::new()
    }

    pub(super) fn tasks(&self) -> Vec<TaskBeside> {
        Vec::new()
    }
}
