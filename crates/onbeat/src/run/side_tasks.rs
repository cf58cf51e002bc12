//! The robot's devices outside the bus: their tasks run as long as the cycle.

use std::path::Path;
use std::sync::mpsc::{self, Receiver};

use devices::{Prepared, Running};
use ipc::server::Builder;
use robot::RobotConfig;

use super::tasks::TaskBeside;
use crate::compose::peripherals;
use crate::{Error, Notice, Reporter};

/// Devices with running tasks. All tasks end on drop.
pub(super) struct Beside {
    running: Running,
    said: Receiver<String>,
}

/// Devices that are not started.
pub(super) type Devices = Prepared;

/// Makes the ports of the robot's devices, which are simulated where the bus is.
pub(super) fn devices(
    robot: &RobotConfig,
    simulated: bool,
    builder: &mut Builder,
) -> Result<Devices, Error> {
    Ok(Prepared::new(&peripherals::peripherals(robot, simulated), builder)?)
}

impl Beside {
    /// Starts their tasks; each joins its two over the IPC behind this socket.
    pub(super) fn start(devices: Devices, ipc: &Path) -> Result<Self, Error> {
        let (say, said) = mpsc::channel();
        let running = devices.start(ipc, move |line| {
            // The receiver is gone only at the end.
            let _ = say.send(line.to_owned());
        });
        Ok(Self { running: running?, said })
    }

    /// Reports the devices' sentences, and the refusals of their tasks, since the last call.
    pub(super) fn look(&self, reporter: &mut dyn Reporter) {
        self.said.try_iter().for_each(|line| reporter.notice(&Notice::Device(line)));
    }

    /// Refusals of the system to their real-time tasks, each a sentence.
    pub(super) fn refusals(&self) -> Vec<String> {
        let of = |task: &rt::task::Task| {
            let name = task.name().to_owned();
            task.grants().refusals().map(move |refusal| format!("{name}: {refusal}")).collect::<Vec<_>>()
        };
        self.running.tasks().iter().flat_map(of).collect()
    }

    /// Their real-time tasks, for the diagnostics.
    pub(super) fn tasks(&self) -> Vec<TaskBeside> {
        self.running.tasks().iter().map(TaskBeside::new).collect()
    }
}
