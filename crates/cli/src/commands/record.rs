//! `onbeat record`: has the flight recorder of a running cycle keep a recording.

use clap::Args;
use ipc::bus::Service;

use crate::failure::Failure;
use crate::output;
use crate::target::Which;

/// Records the cycles around this moment, in a run with `--record FILE --trigger command`.
#[derive(Args, Debug)]
pub(crate) struct Record {
    /// Reason, stored in the recording
    #[arg(value_name = "WORDS", default_value = "onbeat record")]
    reason: String,

    /// Name of the cycle, or path of its socket; without it the one that runs
    #[arg(long, value_name = "NAME|SOCKET")]
    cycle: Option<String>,
}

impl Record {
    pub(crate) fn execute(self) -> Result<(), Failure> {
        let attached = Which(self.cycle.as_deref()).find()?;
        attached.bus()?.call(Service::Record { reason: self.reason })?;
        output::print("the run makes a recording, and logs its file name when it is written\n".to_owned())
    }
}
