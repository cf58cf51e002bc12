//! Planner over DDS: `onbeat-ros2`, and a Python program that only uses DDS.

use std::fs;
use std::path::Path;
use std::process::Command;

use ipc::client::Client;

use super::course::Course;
use crate::child::ChildProcess;
use crate::{Context, Error};

/// The two processes; dropping it kills them.
#[derive(Debug)]
pub(super) struct Ros2 {
    ipc: ChildProcess,
    planner: ChildProcess,
}

impl Ros2 {
    pub(super) fn start(
        context: &Context,
        python: &Path,
        ipc: &str,
        course: &Course,
    ) -> Result<Self, Error> {
        let program = context.programs.onbeat.with_file_name("onbeat-ros2");
        if !program.exists() {
            return Err(Error::other(format_args!(
                "{} is not there: build it with `cargo build -p onbeat-ros2` (and --release where onbeat is), or plan \
                 with --planner IPC",
                program.display()
            )));
        }
        let script = context.directory.join("dynamic_window.py");
        fs::write(&script, SCRIPT).map_err(|error| Error::file(&script, error))?;
        // A domain of its own, so that no other robot of the network is moved.
        let domain = (std::process::id() % 100 + 1).to_string();
        let client = Client::named(ipc).map_err(Error::other)?;
        let mut ipc = Command::new(program);
        ipc.env("ROS_DOMAIN_ID", &domain).env(ipc::client::VARIABLE, client.path());
        let mut planner = Command::new(python);
        planner.env("ROS_DOMAIN_ID", &domain).arg(&script);
        let [goal_x, goal_y] = course.goal;
        let [x, y] = course.obstacle;
        for number in [goal_x, goal_y, x, y, course.obstacle_radius, course.robot_radius, course.tolerance]
        {
            planner.arg(number.to_string());
        }
        Ok(Self { ipc: ChildProcess::start(ipc)?, planner: ChildProcess::start(planner)? })
    }

    pub(super) fn still_goes_on(&mut self) -> Result<(), Error> {
        self.ipc.still_goes_on()?;
        self.planner.still_goes_on()
    }
}

/// The planner as started by hand.
const SCRIPT: &str = include_str!("../../../../python/examples/dynamic_window.py");
