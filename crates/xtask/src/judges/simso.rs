//! SimSo, a simulator of real-time scheduling, simulates the task sets that `onbeat analyse`
//! analyses.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Runs one step: random task sets, fixed priorities and earliest deadline first.
pub(crate) fn all(root: &Path, onbeat: &Path, report: &mut Report) {
    report.step("conformance simso", || {
        let python = match setup::python_with_simso(root) {
            Ok(python) => python,
            Err(why) => return Outcome::Skipped(why),
        };
        let mut judge = Command::new(python);
        judge.arg(root.join("lab/peers/simso_judge.py")).arg(onbeat);
        command::run_within(&mut judge, LONGEST).map_or_else(Outcome::Failed, |()| Outcome::Passed)
    });
}

/// Time limit; the run takes some seconds.
const LONGEST: Duration = Duration::from_secs(300);
