//! Independent programs that check ours: three MainDevices, a dissector, a scheduling simulator, both DDS
//! of ROS 2 and its definitions.

mod cyclone;
mod fastdds;
pub(crate) mod peers;
mod simso;
pub(crate) mod simulate;
pub(crate) mod tshark;

use std::path::Path;

use crate::command;
use crate::report::{Outcome, Report};

/// Runs all judges, each as a step. They check the program that the tests were built with.
pub(crate) fn all(root: &Path, report: &mut Report) {
    let mut built = false;
    report.step("build onbeat, onbeat-ros2", || {
        let outcome = command::build_programs(root).map_or_else(Outcome::Failed, |()| Outcome::Passed);
        built = matches!(outcome, Outcome::Passed);
        outcome
    });
    if built {
        let onbeat = root.join("target/debug/onbeat");
        peers::all(root, &onbeat, report);
        tshark::all(root, &onbeat, report);
        simso::all(root, &onbeat, report);
        cyclone::definitions(root, report);
        cyclone::all(root, &onbeat, report);
        fastdds::all(root, &onbeat, report);
    }
}
