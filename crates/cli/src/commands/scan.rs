//! `onbeat scan`: lists the SubDevices on the bus.

use std::path::PathBuf;

use clap::Args;

use ipc::bus::BusStatus;
use onbeat::sub_devices::Described;

use crate::bus::{ToolBus, Where};
use crate::commands::diag::FINDINGS;
use crate::failure::Failure;
use crate::output;
use crate::words::bus_status;
use crate::words::sub_devices::drawing;

/// The bus goes to PreOp and back to Init. A bus of another MainDevice is not touched without
/// --take-over; a bus that a running Onbeat cycle uses is read through that cycle, which continues.
/// Exit code 0 if all SubDevices are well, 3 if one has a defect or exchanges no process data.
#[derive(Args, Debug)]
pub(crate) struct Scan {
    /// Robot file that says what should be there; simulated without --iface
    #[arg(value_name = "ROBOT.toml", conflicts_with = "cycle")]
    robot: Option<PathBuf>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,

    /// Show identities, mailboxes, clocks and process data in full; of a running cycle also the
    /// error counters
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    place: Where,
}

impl Scan {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let (found, status) = ToolBus::with("scan", self.robot.as_deref(), &self.place, |bus| {
            let found = bus.described()?;
            let status = match bus {
                ToolBus::Own(_) => None,
                ToolBus::Running(bus) => Some(bus.status(self.json || self.verbose)?),
            };
            Ok((found, status))
        })?;
        output::print(if self.json {
            json(&found, status.as_ref())?
        } else {
            self.text(&found, status.as_ref())
        })?;
        let has_defects = found.iter().any(|it| !it.object.remarks.is_empty());
        // A lost frame is no defect.
        let lacks_data = |status: &BusStatus| status.sub_devices.iter().any(|it| it.missed > 2);
        match has_defects || status.as_ref().is_some_and(lacks_data) {
            true => Err(Failure::silent(FINDINGS)),
            false => Ok(()),
        }
    }

    fn text(&self, found: &[Described], status: Option<&BusStatus>) -> String {
        let text = drawing(found, self.verbose);
        status.map_or(text.clone(), |status| text + &bus_status::text(found, status))
    }
}

/// The SubDevices, each with its state in the running cycle, if there is one.
fn json(found: &[Described], status: Option<&BusStatus>) -> Result<String, Failure> {
    let mut objects = Vec::new();
    for (position, it) in found.iter().enumerate() {
        let mut object = serde_json::to_value(&it.object)?;
        if let Some(now) = status.and_then(|status| status.sub_devices.get(position)) {
            object["now"] = serde_json::to_value(now)?;
        }
        objects.push(object);
    }
    Ok(serde_json::to_string_pretty(&objects)? + "\n")
}
