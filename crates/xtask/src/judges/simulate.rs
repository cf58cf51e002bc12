//! `onbeat simulate` on the far end of a testbed.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use testkit::{Side, Testbed};

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
