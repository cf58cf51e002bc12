//! Independent programs that check ours: three MainDevices, a dissector, a scheduling simulator,
//! both DDS of ROS 2, its definitions, and ROS 2 itself.

pub(crate) mod peers;
mod ros2;
pub(crate) mod tshark;

use std::path::Path;
use std::process::Command;
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use crate::report::{Outcome, Report, timed};
use crate::{command, setup, tests};

/// A conformance check that adds its steps to the report.
type Judge = fn(&Path, &Path, &mut Report);

/// Names of the conformance checks that can be selected.
pub(crate) const NAMES: [&str; 7] =
    ["cyclonedds", "ros2", "peers", "tshark", "simso", "definitions", "fastdds"];

/// Runs all conformance checks, or one of them, each as a step. They check the program that the
/// tests were built with.
pub(crate) fn all(root: &Path, only: Option<&str>, report: &mut Report) {
    let is_wanted = |name: &str| only.is_none_or(|only| only == name);
    let mut built = false;
    report.step("build onbeat, onbeat-ros2, ethercrab", || {
        let done = tests::build_programs(root).and_then(|()| peers::build(root));
        let outcome = done.map_or_else(Outcome::Failed, |()| Outcome::Passed);
        built = matches!(outcome, Outcome::Passed);
        outcome
    });
    if built {
        let onbeat = root.join("target/debug/onbeat");
        // Made once, before two checks need it; each reports what is missing.
        let _ = setup::python_with_cyclone(root);
        std::thread::scope(|scope| {
            // A minute of waiting for robots, in a separate network.
            let start = |name, judge: fn(&Path, &Path) -> Outcome| {
                let onbeat = &onbeat;
                is_wanted(name).then(|| scope.spawn(move || timed(|| judge(root, onbeat))))
            };
            let beside = [
                ("conformance Cyclone DDS", start("cyclonedds", ros2::cyclone)),
                ("conformance ROS 2", start("ros2", ros2::genuine)),
            ];
            let others: [(&str, Judge); 5] = [
                ("peers", peers::all),
                ("tshark", tshark::all),
                ("simso", simso),
                ("definitions", |root, _, report| ros2::definitions(root, report)),
                ("fastdds", ros2::fast_dds),
            ];
            for (_, judge) in others.into_iter().filter(|(name, _)| is_wanted(name)) {
                judge(root, &onbeat, report);
            }
            for (name, judge) in beside {
                match judge.map(ScopedJoinHandle::join) {
                    Some(Ok((took, outcome))) => report.record(name, took, outcome),
                    Some(Err(panic)) => std::panic::resume_unwind(panic),
                    None => (),
                }
            }
        });
    }
}

/// SimSo, a simulator of real-time scheduling, checks `onbeat analyse`: random task sets, fixed
/// priorities and earliest deadline first.
fn simso(root: &Path, onbeat: &Path, report: &mut Report) {
    report.step("conformance simso", || {
        let python = match setup::python_with_simso(root) {
            Ok(python) => python,
            Err(why) => return Outcome::Skipped(why),
        };
        let mut judge = Command::new(python);
        judge.arg(root.join("lab/peers/simso_judge.py")).arg(onbeat);
        command::run_within(&mut judge, LONGEST_OF_SIMSO).map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

/// Time limit; the run takes some seconds.
const LONGEST_OF_SIMSO: Duration = Duration::from_secs(300);
