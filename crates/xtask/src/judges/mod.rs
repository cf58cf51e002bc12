//! Other people's programs judging ours: three MainDevices and a dissector.

pub(crate) mod simulate;

use std::path::Path;

use crate::report::{Outcome, Report};

/// All judges, each a step of its own.
pub(crate) fn all(root: &Path, report: &mut Report) {
    report.step("judge python peers", || match crate::setup::python(root) {
        Ok(_) => Outcome::Passed,
        Err(why) => Outcome::Skipped(why),
    });
}
