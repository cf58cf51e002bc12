//! Three other MainDevices drive the six-axis robot of `onbeat simulate`, each on a separate cable:
//! to Op and back, to Op again, and there `onbeat fault` makes a drive leave Op and one lose its
//! power.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testkit::{Side, Testbed};

use crate::report::{Outcome, Report};
use crate::{command, setup};

/// Runs each peer as a step.
pub(crate) fn all(root: &Path, onbeat: &Path, report: &mut Report) {
    for (peer, script) in [("pysoem", "pysoem_judge.py"), ("kickcat", "kickcat_judge.py")] {
        report.step(&format!("conformance {peer}"), || {
            let python = match setup::python(root) {
                Ok(python) => python,
                Err(why) => return Outcome::Skipped(why),
            };
            let mut command = Command::new(python);
            command.arg(root.join("lab/peers").join(script));
            judge(root, onbeat, command)
        });
    }
    report.step("conformance ethercrab", || {
        let mut command = Command::new(root.join("lab/peers/ethercrab/target/debug/ethercrab-peer"));
        command.arg("check");
        judge(root, onbeat, command)
    });
}

/// Builds ethercrab's peer.
///
/// # Errors
/// The build failed.
pub(super) fn build(root: &Path) -> Result<(), String> {
    command::run(&mut command::cargo(&root.join("lab/peers/ethercrab"), &["build", "--quiet"]))
}

/// Runs one peer repeatedly on its interface.
fn judge(root: &Path, onbeat: &Path, mut peer: Command) -> Outcome {
    let testbed = match Testbed::new() {
        Ok(testbed) => testbed,
        Err(skip) => return Outcome::Skipped(skip.to_string()),
    };
    let mut simulate = match Simulate::start(&testbed, onbeat, &root.join("examples/six-axis.toml")) {
        Ok(simulate) => simulate,
        Err(why) => return Outcome::Failed(why),
    };
    peer.arg(Side::Near.interface()).arg(onbeat).arg(simulate.name());
    let mut peer = testbed.run_in(Side::Near, peer);
    // A bus that was up before comes up again like a fresh one, for the same process and for the
    // next one.
    for time in 1..=PROCESSES {
        if let Err(why) = command::run_within(&mut peer, LONGEST) {
            return Outcome::Failed(format!("process {time} of {PROCESSES}: {why}"));
        }
    }
    simulate.still_running().map_or_else(Outcome::Failed, |()| Outcome::Passed)
}

/// Number of processes of each peer, one after another, on the same simulation; each reaches Op at
/// least twice.
const PROCESSES: u32 = 2;

/// Time limit; three times to Op and 3 000 cycles at 1 kHz take some 10 s.
const LONGEST: Duration = Duration::from_secs(60);

/// Running `onbeat simulate`; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Simulate {
    process: Child,
    name: String,
}

impl Simulate {
    /// Starts `onbeat simulate ROBOT --iface far`, which `onbeat fault` finds by [`Self::name`].
    ///
    /// # Errors
    /// The program does not start.
    pub(crate) fn start(testbed: &Testbed, onbeat: &Path, robot: &Path) -> Result<Self, String> {
        let mut command = Command::new(onbeat);
        let name = format!("judged-by-{}", std::process::id());
        command.arg("simulate").arg(robot).args(["--iface", Side::Far.interface(), "--control", &name]);
        let mut command = testbed.run_in(Side::Far, command);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let process = command.spawn().map_err(|error| format!("{}: {error}", onbeat.display()))?;
        Ok(Self { process, name })
    }

    /// Name of its control socket.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Checks that it has not ended by itself.
    ///
    /// # Errors
    /// Its exit status.
    pub(crate) fn still_running(&mut self) -> Result<(), String> {
        match self.process.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("`onbeat simulate` ended by itself with {status}")),
            Err(error) => Err(format!("`onbeat simulate`: {error}")),
        }
    }
}

impl Drop for Simulate {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
