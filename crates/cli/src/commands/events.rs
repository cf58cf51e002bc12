//! `onbeat events`: events of a running cycle.

use clap::Args;
use serde_json::json;

use crate::arguments::RunningCycle;
use crate::failure::Failure;
use crate::output;
use crate::words::bus_event;

/// Reads the events of a running cycle as any program may, without root, with the numbers of their cycles: states of the
/// bus and of SubDevices, emergencies, losses and returns, faults of drives, axes that were stopped.
#[derive(Args, Debug)]
pub(crate) struct Events {
    /// Go on with those to come, until the cycle ends
    #[arg(short, long)]
    follow: bool,

    /// Print a JSON object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    of: RunningCycle,
}

impl Events {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let attached = self.of.find()?;
        output::end_when_closed();
        for event in attached.bus()?.events(self.follow)? {
            let line = match (event, self.json) {
                (Ok(event), false) => bus_event::line(&event),
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
}
