//! Load of the navigation experiment: stress-ng as in the paper, or our own loads if that is not
//! installed.

use std::process::{Command, Stdio};
use std::thread::available_parallelism;

use crate::child::ChildProcess;
use crate::load::{Load, Loads};
use crate::{Context, Error};

/// Running load, until it is ended or dropped.
#[derive(Debug)]
pub(super) enum Stress {
    StressNg(ChildProcess),
    Ours(Loads),
}

impl Stress {
    pub(super) fn start(context: &Context) -> Result<Self, Error> {
        if !is_installed() {
            return Loads::start(context, &ours()).map(Self::Ours);
        }
        let mut command = Command::new("stress-ng");
        command.args(arguments()).arg("--quiet").arg("--temp-path").arg(&context.directory);
        let process = ChildProcess::start(command)?;
        context.wait(UNDER_WAY);
        Ok(Self::StressNg(process))
    }

    /// Ends the load; returns its failures.
    pub(super) fn end(self) -> Vec<String> {
        match self {
            Self::StressNg(mut process) => {
                let ended = process.still_goes_on();
                // stress-ng reports a stop by signal as a failure.
                let _ = process.finish();
                ended
                    .err()
                    .map(|error| format!("the load ended before the drive: {error}"))
                    .into_iter()
                    .collect()
            }
            Self::Ours(mut loads) => loads.ended(),
        }
    }
}

/// Description of the load.
pub(super) fn words() -> String {
    if is_installed() {
        return format!("stress-ng {}", arguments().join(" "));
    }
    let names: Vec<&str> = ours().iter().map(|load| load.name()).collect();
    format!("our own, for stress-ng is not installed: {}", names.join(", "))
}

fn is_installed() -> bool {
    let mut command = Command::new("stress-ng");
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Arguments of stress-ng: CPU and memory, as the paper; two workers of each for each CPU.
fn arguments() -> Vec<String> {
    let workers = (2 * available_parallelism().map_or(1, usize::from)).to_string();
    ["--cpu", &workers, "--vm", &workers, "--vm-bytes", "64M"].map(str::to_owned).to_vec()
}

fn ours() -> Vec<Load> {
    let cpus = available_parallelism().map_or(1, usize::from);
    [vec![Load::Cpu; 2 * cpus], vec![Load::Memory; cpus]].concat()
}

/// Time for the load to start.
const UNDER_WAY: std::time::Duration = std::time::Duration::from_secs(1);
