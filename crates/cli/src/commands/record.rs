//! `onbeat record`: has the flight recorder of a running cycle keep a recording.

use clap::Args;
use ipc::bus::Service;

use super::Which;
use crate::failure::Failure;
use crate::output;

/// Keeps the cycles before and after this moment, where the run was started with `--record FILE --trigger command`.
#[derive(Args, Debug)]
pub(crate) struct Record {
    /// Words for the recording: why it is kept
    #[arg(value_name = "WORDS", default_value = "asked for by onbeat record")]
    reason: String,

    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, value_name = "NAME|SOCKET")]
    cycle: Option<String>,
}

impl Record {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let attached = Which(self.cycle.as_deref()).find()?;
        attached.bus()?.call(Service::Record { reason: self.reason })?;
        output::print("the run keeps a recording, and tells its file when it is written\n".to_owned())
    }
}
