//! Builds of later steps, made while the tests run.
//!
//! Most tests of whole robots wait more than they compute. The builds take what they leave, once the tests are
//! built: the policy `SCHED_IDLE` of Linux (sched(7)), which any ordinary thread preempts. A step whose build failed, or was
//! not made ahead, builds by itself and tells the failure.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{command, fuzz, judges, proofs, rt};

/// Word on the command line of the process that builds.
pub(crate) const WORD: &str = "build-ahead";

/// Process that builds ahead; waited for, and ended if this program ends before.
#[derive(Debug)]
pub(crate) struct Ahead(Option<Child>);

impl Ahead {
    /// Starts this program again, at idle priority; without `chrt` nothing is built ahead.
    pub(crate) fn start(root: &Path) -> Self {
        let Ok(this) = std::env::current_exe() else { return Self(None) };
        let mut builds = Command::new("chrt");
        builds.args(["--idle", "0"]).arg(this).arg(WORD).current_dir(root);
        // One at a time: no scheduler leaves a CPU to the tests where two builds have them all.
        builds.env("CARGO_BUILD_JOBS", "1");
        builds.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        println!("beside the tests: {}", command::words(&builds));
        Self(testkit::end_with_parent(&mut builds).spawn().ok())
    }

    /// Returns when the builds have ended.
    pub(crate) fn wait(&mut self) {
        if let Some(builds) = &mut self.0 {
            let _ = builds.wait();
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(builds) = &mut self.0 {
            let _ = builds.kill();
            let _ = builds.wait();
        }
    }
}

/// Makes the long builds. Their outcomes are those of the steps that need them, which build again.
pub(crate) fn build(root: &Path) {
    let _ = rt::build(root);
    let _ = fuzz::build(root);
    proofs::build(root);
    let _ = judges::peers::build(root);
}
