//! Eclipse Cyclone DDS, a DDS of ROS 2, watches and commands simulated robots through
//! `onbeat-ros2`; and ROS 2's own definitions check the messages.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Checks a mobile base with its sensors, and an arm, each down to simulated drives and devices.
pub(super) fn judge(root: &Path, onbeat: &Path) -> Outcome {
    let python = match setup::python_with_cyclone(root) {
        Ok(python) => python,
        Err(why) => return Outcome::Skipped(why),
    };
    let mut judge = in_a_network_of_its_own();
    judge.arg(python).arg(root.join("lab/peers/cyclone_judge.py"));
    judge.arg(onbeat).arg(root.join("target/debug/onbeat-ros2")).arg(root.join("examples"));
    command::run_within(&mut judge, LONGEST).map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Decodes and encodes the messages of the golden file with the definitions included in `rosbags`.
pub(super) fn definitions(root: &Path, report: &mut Report) {
    report.step("conformance ROS 2 definitions", || {
        let python = match setup::python_with_cyclone(root) {
            Ok(python) => python,
            Err(why) => return Outcome::Skipped(why),
        };
        let mut judge = Command::new(python);
        judge.arg(root.join("lab/peers/ros_definitions_judge.py"));
        judge.arg(root.join("ros2/src/messages/golden.txt"));
        Outcome::of(&mut judge)
    });
}

/// Isolates the check from other DDS participants of this machine by a separate network namespace
/// and /dev/shm: Fast DDS keeps a file there for each port, named after its number alone, and a
/// file of another version ends the program. Without root it shares both and only has a separate
/// domain.
pub(super) fn in_a_network_of_its_own() -> Command {
    let unshare = [
        "--net",
        "--mount",
        "--",
        "sh",
        "-c",
        "mount -t tmpfs tmpfs /dev/shm; ip link set lo up multicast on && ip route add 224.0.0.0/4 dev lo; exec \"$@\"",
        "sh",
    ];
    if command::works("unshare", &["--net", "--mount", "--", "true"]) {
        let mut command = Command::new("unshare");
        command.args(unshare);
        return command;
    }
    Command::new("env")
}

/// Time limit; the run takes about a minute.
const LONGEST: Duration = Duration::from_secs(420);
