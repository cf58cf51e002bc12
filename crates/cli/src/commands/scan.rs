//! `onbeat scan`: who is on the bus.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::Wire;
use crate::bus::ToolBus;
use crate::failure::Failure;
use crate::output;
use crate::words::sub_devices::{SubDeviceObject, drawing};

/// The bus is brought to PreOp, shown, and brought back to Init. One that another MainDevice runs is left alone, unless
/// it is to be taken over.
#[derive(Args, Debug)]
pub(crate) struct Scan {
    /// Robot file that says what should be there; simulated without --iface
    #[arg(value_name = "ROBOT.toml")]
    robot: Option<PathBuf>,

    /// Print a JSON array
    #[arg(long)]
    json: bool,

    /// Show identities, mailboxes, clocks and process data in full
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    wire: Wire,
}

impl Scan {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let text = ToolBus::with("scan", self.robot.as_deref(), &self.wire, |bus| {
            let found = bus.main_device().sub_devices();
            if !self.json {
                return Ok(drawing(found, self.verbose));
            }
            let objects: Vec<_> = found.iter().map(SubDeviceObject::new).collect();
            Ok(serde_json::to_string_pretty(&objects)? + "\n")
        })?;
        output::print(text)
    }
}
