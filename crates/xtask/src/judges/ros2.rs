//! ROS 2 and both its DDS watch and command simulated robots through `onbeat-ros2`; its own
//! definitions check the messages.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Eclipse Cyclone DDS checks a mobile base with its sensors, and an arm, each down to simulated
/// drives and devices.
pub(super) fn cyclone(root: &Path, onbeat: &Path) -> Outcome {
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

/// A genuine ROS 2, rclpy on Fast DDS, checks a base and an arm. Makes the interfaces that PyPI
/// lacks, compares the hashes of types with ROS 2's own generator, then checks the node.
pub(super) fn genuine(root: &Path, onbeat: &Path) -> Outcome {
    let python = match setup::python_with_ros(root) {
        Ok(python) => python,
        Err(why) => return Outcome::Skipped(why),
    };
    let mut interfaces = Command::new(&python);
    if let Err(why) = command::run(interfaces.arg(root.join("lab/peers/ros_interfaces.py"))) {
        return Outcome::Failed(why);
    }
    let hashes = root.join("ros2/src/messages/hashes.txt");
    let mut generator = Command::new(&python);
    if let Err(why) = command::run(generator.arg(root.join("lab/peers/ros_hashes.py")).arg(&hashes)) {
        return Outcome::Failed(why);
    }
    let mut judge = in_a_network_of_its_own();
    judge.arg(python).arg(root.join("lab/peers/ros_judge.py"));
    judge.arg(onbeat).arg(root.join("target/debug/onbeat-ros2")).arg(root.join("examples")).arg(&hashes);
    command::run_within(&mut judge, LONGEST_OF_ROS).map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Fast DDS, the other DDS of ROS 2, checks the base: a small program with Debian's library.
/// Skipped without Debian's Fast DDS 2, a library named after its first protocol.
pub(super) fn fast_dds(root: &Path, onbeat: &Path, report: &mut Report) {
    report.step("conformance Fast DDS", || {
        if !Path::new(setup::FAST_DDS).exists() {
            return Outcome::Skipped(format!("no {} (Debian 12: libfastrtps-dev)", setup::FAST_DDS));
        }
        let python = match setup::python_with_cyclone(root) {
            Ok(python) => python,
            Err(why) => return Outcome::Skipped(why),
        };
        let program = root.join("target/fastdds_judge");
        let mut compile = Command::new("c++");
        compile
            .args(["-std=c++17", "-O1", "-o"])
            .arg(&program)
            .arg(root.join("lab/peers/fastdds_judge.cpp"));
        if let Err(why) = command::run(compile.args(["-lfastrtps", "-lfastcdr"])) {
            return Outcome::Failed(why);
        }
        let mut judge = in_a_network_of_its_own();
        judge.arg(python).arg(root.join("lab/peers/fastdds_judge.py")).arg(&program);
        judge.arg(onbeat).arg(root.join("target/debug/onbeat-ros2")).arg(root.join("examples"));
        // Next to other work Fast DDS did not match the endpoints in 3 of 11 runs, and in none of 8
        // alone.
        let mut judged = command::run_within(&mut judge, LONGEST_OF_FAST_DDS);
        if let Err(why) = &judged {
            println!("conformance Fast DDS: {why}; once more");
            judged = command::run_within(&mut judge, LONGEST_OF_FAST_DDS);
        }
        judged.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

/// Isolates the check from other DDS participants of this machine by a separate network namespace
/// and /dev/shm: Fast DDS keeps a file there for each port, named after its number alone, and a
/// file of another version ends the program. Without root it shares both and only has a separate
/// domain.
fn in_a_network_of_its_own() -> Command {
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

/// Time limit; the run takes about two minutes.
const LONGEST_OF_ROS: Duration = Duration::from_secs(420);

/// Time limit; the run takes some seconds.
const LONGEST_OF_FAST_DDS: Duration = Duration::from_secs(120);
