//! Planner over DDS: `onbeat-ros2`, and a Python program that uses DDS alone, or is a node of ROS 2.

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
        as_node: bool,
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
        planner.arg("--course").arg(serde_json::to_string(course).map_err(Error::other)?);
        planner.args(as_node.then_some("--ros"));
        Ok(Self { ipc: ChildProcess::start(ipc)?, planner: ChildProcess::start(planner)? })
    }

    pub(super) fn still_goes_on(&mut self) -> Result<(), Error> {
        self.ipc.still_goes_on()?;
        self.planner.still_goes_on()
    }
}

/// Checks that a Python has what a node needs.
pub(super) fn check_rclpy(python: &Path) -> Result<(), Error> {
    let probe = Command::new(python).args(["-c", "import rclpy, nav_msgs.msg, geometry_msgs.msg"]).output();
    let why = match probe {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Error::other(format_args!(
        "{}: {why}; expected a Python with rclpy, nav_msgs and geometry_msgs: source ROS 2's setup file, name one with \
         --python, or plan with --planner ipc",
        python.display()
    )))
}

/// The planner as started by hand.
const SCRIPT: &str = include_str!("../../../../python/examples/dynamic_window.py");

#[cfg(test)]
mod tests {
    use super::*;

    // feature(papers): `measure navigation --planner ros`: refused before it starts where there is no rclpy
    #[test]
    fn a_python_without_rclpy_is_refused_in_words() {
        for (python, words) in [("/no/such/python", "No such file"), ("false", "false: ")] {
            let why = check_rclpy(Path::new(python)).expect_err(python).to_string();
            assert!(why.contains(words) && why.contains("or plan with --planner ipc"), "{why}");
        }
    }
}
