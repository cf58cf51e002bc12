//! A genuine ROS 2, rclpy on Fast DDS, watches and commands a simulated base and an arm through
//! `onbeat-ros2`.

use std::path::Path;
use std::time::Duration;

use super::cyclone::in_a_network_of_its_own;
use crate::report::Outcome;
use crate::{command, setup};

/// Makes the interfaces that PyPI lacks, compares the hashes of types with ROS 2's own generator,
/// then checks the node.
pub(super) fn judge(root: &Path, onbeat: &Path) -> Outcome {
    let python = match setup::python_with_ros(root) {
        Ok(python) => python,
        Err(why) => return Outcome::Skipped(why),
    };
    let mut interfaces = std::process::Command::new(&python);
    if let Err(why) = command::run(interfaces.arg(root.join("lab/peers/ros_interfaces.py"))) {
        return Outcome::Failed(why);
    }
    let hashes = root.join("ros2/src/messages/hashes.txt");
    let mut generator = std::process::Command::new(&python);
    if let Err(why) = command::run(generator.arg(root.join("lab/peers/ros_hashes.py")).arg(&hashes)) {
        return Outcome::Failed(why);
    }
    let mut judge = in_a_network_of_its_own();
    judge.arg(python).arg(root.join("lab/peers/ros_judge.py"));
    judge.arg(onbeat).arg(root.join("target/debug/onbeat-ros2")).arg(root.join("examples")).arg(&hashes);
    command::run_within(&mut judge, LONGEST).map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Time limit; the run takes about two minutes.
const LONGEST: Duration = Duration::from_secs(420);
