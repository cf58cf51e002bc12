//! Independent programs that check ours: three MainDevices, a dissector, a scheduling simulator, both DDS
//! of ROS 2, its definitions, and ROS 2 itself.

mod cyclone;
mod fastdds;
pub(crate) mod peers;
mod ros;
mod simso;
pub(crate) mod simulate;
pub(crate) mod tshark;

use std::path::Path;

use crate::report::{Outcome, Report, timed};
use crate::{command, setup};

/// Runs all judges, each as a step. They check the program that the tests were built with.
pub(crate) fn all(root: &Path, report: &mut Report) {
    let mut built = false;
    report.step("build onbeat, onbeat-ros2, ethercrab", || {
        let done = command::build_programs(root).and_then(|()| peers::build(root));
        let outcome = done.map_or_else(Outcome::Failed, |()| Outcome::Passed);
        built = matches!(outcome, Outcome::Passed);
        outcome
    });
    if built {
        let onbeat = root.join("target/debug/onbeat");
        // Made once, before two judges want it; what it lacks is told by each.
        let _ = setup::python_with_cyclone(root);
        std::thread::scope(|scope| {
            // A minute of waiting for robots, in a network of its own.
            let cyclone = scope.spawn(|| timed(|| cyclone::judge(root, &onbeat)));
            let ros = scope.spawn(|| timed(|| ros::judge(root, &onbeat)));
            peers::all(root, &onbeat, report);
            tshark::all(root, &onbeat, report);
            simso::all(root, &onbeat, report);
            cyclone::definitions(root, report);
            fastdds::all(root, &onbeat, report);
            for (name, judge) in [("conformance Cyclone DDS", cyclone), ("conformance ROS 2", ros)] {
                match judge.join() {
                    Ok((took, outcome)) => report.record(name, took, outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
}
