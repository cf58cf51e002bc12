//! Fast DDS, the other DDS of ROS 2: a small program around Debian's library, beside the same base.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::cyclone::in_a_network_of_its_own;
use crate::report::{Outcome, Report};
use crate::{command, setup};

/// One step; skipped where the library is not installed: it is large, and no other step needs it.
pub(crate) fn all(root: &Path, onbeat: &Path, report: &mut Report) {
    report.step("judge fastdds", || {
        if !Path::new(HEADER).exists() {
            return Outcome::Skipped(format!("no {HEADER}: apt-get install libfastrtps-dev"));
        }
        let python = match setup::python_with_cyclone(root) {
            Ok(python) => python,
            Err(why) => return Outcome::Skipped(why),
        };
        let program = root.join("target/fastdds_judge");
        let mut compile = Command::new("c++");
        compile.args(["-std=c++17", "-O1", "-o"]).arg(&program).arg(root.join("peers/fastdds_judge.cpp"));
        if let Err(why) = command::run(compile.args(["-lfastrtps", "-lfastcdr"])) {
            return Outcome::Failed(why);
        }
        let mut judge = in_a_network_of_its_own();
        judge.arg(python).arg(root.join("peers/fastdds_judge.py")).arg(&program);
        judge.arg(onbeat).arg(root.join("target/debug/onbeat-ros2")).arg(root.join("examples"));
        command::run_within(&mut judge, LONGEST).map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

const HEADER: &str = "/usr/include/fastdds/dds/domain/DomainParticipant.hpp";

/// It takes some seconds.
const LONGEST: Duration = Duration::from_secs(120);
