//! `onbeat events`: events of a running cycle, and events kept over restarts.

use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use ethercat::time::Instant;
use onbeat::state::{Folder, History, Kept, usual_directory};
use serde_json::json;

use crate::arguments::RunningCycle;
use crate::failure::Failure;
use crate::output;
use crate::words::moment::Moment;

/// Reads the events of a running cycle, with their cycle numbers, without root: states of the bus
/// and of SubDevices, emergencies, losses and returns, faults of drives, stops of axes.
#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Follow new events until the cycle ends
    #[arg(short, long)]
    follow: bool,

    /// Print a JSON object a line
    #[arg(long)]
    json: bool,

    /// Print the history of this robot in the state directory instead: first causes of stops; users
    /// that reset, forced or accepted; changes of the robot file
    #[arg(long, value_name = "ROBOT", conflicts_with_all = ["follow", "cycle", "iface"])]
    kept: Option<String>,

    /// State directory of --kept
    #[arg(long, value_name = "FOLDER", requires = "kept")]
    state: Option<PathBuf>,

    /// With --kept: the simulated robot of this name
    #[arg(long, requires = "kept")]
    simulated: bool,

    #[command(flatten)]
    of: RunningCycle,
}

impl Events {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        if let Some(robot) = &self.kept {
            return self.print_kept(robot);
        }
        let attached = self.of.find().map_err(|failure| match self.of.is_absent() {
            true => Failure::new(format!("{failure}; `onbeat events --kept ROBOT` prints kept events")),
            false => failure,
        })?;
        output::end_when_closed();
        for event in attached.bus()?.events(self.follow)? {
            let line = match (event, self.json) {
                (Ok(event), false) => {
                    let at = Moment::of(Instant::from_nanos(event.at_ns), event.cycle);
                    format!("{at}: {}", event.sentence)
                }
                (Ok(event), true) => serde_json::to_string(&event)?,
                (Err(missed), false) => {
                    format!("{missed} events were missed: this program was too slow for them")
                }
                (Err(missed), true) => json!({ "missed": missed }).to_string(),
            };
            output::print(line + "\n")?;
        }
        Ok(())
    }

    fn print_kept(&self, robot: &str) -> Result<(), Failure> {
        let no_directory = || {
            let found = "no state directory: neither STATE_DIRECTORY, XDG_STATE_HOME nor HOME is set";
            Failure::new(format!("{found}; name it by --state FOLDER"))
        };
        let directory = self.state.clone().or_else(usual_directory).ok_or_else(no_directory)?;
        let failed = |error: onbeat::state::StateError| Failure::new(error.to_string());
        let nothing = || {
            let path = Folder::path_of(&directory, robot, self.simulated);
            Failure::new(format!(
                "nothing is kept of robot \"{robot}\" in {}: expected the folder of a run of it with a state directory; see \
                 --state and --simulated",
                path.display()
            ))
        };
        let folder =
            Folder::look(&directory, robot, self.simulated).map_err(failed)?.ok_or_else(nothing)?;
        output::end_when_closed();
        for kept in History::read(&folder).map_err(failed)?.events() {
            output::print(if self.json { serde_json::to_string(kept)? } else { line(kept) } + "\n")?;
        }
        Ok(())
    }
}

/// A kept event as a line: UTC, sentence, and its client where the sentence lacks it.
fn line(kept: &Kept) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(kept.unix_ms.min(LATEST_MS));
    format!("{} {}", humantime::format_rfc3339_millis(time), output::shown(&kept.sentence))
}

/// The year 9999: a later time is none that can be written.
const LATEST_MS: u64 = 253_370_764_800_000;
