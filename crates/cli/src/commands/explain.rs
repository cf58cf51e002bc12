//! `onbeat explain`: why cycles of a running cycle were late.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ipc::bus::{Outcome, Service};
use ipc::client::Client;
use robot::{Overrides, RobotConfig};
use serde::Serialize;
use types::late::LateReport;
use types::time::nanoseconds;

use crate::arguments::{RunningCycle, lasting};
use crate::failure::Failure;
use crate::output;
use crate::target::Which;
use crate::words::lateness::{self, Remedy};

/// Longest wait for an answer; a suspended cycle gives none.
const LONGEST: Duration = Duration::from_secs(5);

/// Names the cycles that were late, the cause of each, and the remedies. A run with --explain knows
/// the threads and interrupts by name; any other run answers from its records and counters. The
/// cycle does nothing for it.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// Robot file of the cycle; without it the cycle that runs
    #[arg(value_name = "ROBOT.toml", conflicts_with_all = ["cycle", "iface"])]
    robot: Option<PathBuf>,

    /// Look back this far; whole seconds, 10 min at most
    #[arg(long, value_name = "TIME", value_parser = whole_seconds, default_value = "1min")]
    last: Duration,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    of: RunningCycle,
}

/// A time of `--last`.
fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = lasting(text)?;
    match time.subsec_nanos() {
        0 => Ok(time),
        _ => Err(format!(
            "found {}, expected whole seconds, as 1s: the run counts late cycles by the second",
            types::duration::format(time)
        )),
    }
}

/// The answer for programs.
#[derive(Serialize)]
struct ExplainAnswer<'a> {
    /// Name of the cycle.
    name: &'a str,
    /// Its process.
    process: u32,
    #[serde(flatten)]
    report: &'a LateReport,
    remedies: Vec<Remedy>,
}

impl Explain {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let attached = self.find()?;
        let last_ns = nanoseconds(self.last);
        let mut bus = attached.bus()?;
        bus.set_timeout(Some(LONGEST))?;
        let Outcome::Late(report) = bus.call(Service::Late { last_ns })? else {
            return Err(Failure::new(
                "the cycle gave another answer, expected its late cycles: use the onbeat that runs it",
            ));
        };
        if self.json {
            let answer = ExplainAnswer {
                name: attached.name(),
                process: attached.process(),
                report: &report,
                remedies: lateness::remedies(&report.by_cause),
            };
            return output::print(serde_json::to_string_pretty(&answer)? + "\n");
        }
        output::print(output::shown(&lateness::text(&report, self.last)).into_owned())
    }

    fn find(&self) -> Result<Client, Failure> {
        let Some(robot) = &self.robot else { return self.of.find() };
        let robot = RobotConfig::read_or_built_in(Some(Path::new(robot)), Overrides::default())?;
        Ok(Which(Some(&robot.ipc.name)).find()?)
    }
}
