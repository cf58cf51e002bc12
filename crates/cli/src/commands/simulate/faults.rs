//! Faults of a simulator, commanded by `onbeat fault`, and a line for each that took place.

use std::sync::mpsc::Receiver;

use ipc::text::Server;
use onbeat::Notice;
use onbeat::fault::socket::open;
use onbeat::fault::{FaultHandle, FaultySegment, Report, Targets};
use robot::RobotConfig;
use rt::output::OutputThread;

use crate::failure::Failure;
use crate::output::{self, LAST_TIMEOUT};

/// Work parallel to the thread that answers frames.
pub(super) struct OnDemand {
    /// Takes faults of others.
    _server: Option<Server>,
    /// Thread that prints the faults that took place.
    saying: Option<OutputThread<()>>,
}

impl OnDemand {
    /// Opens the socket, by this name if there is one, and prints its path. Without a socket of a
    /// default name the simulator continues. Called before the calling thread gets its priority,
    /// which the threads started here must not inherit.
    pub(super) fn begin(
        robot: &RobotConfig,
        chosen: Option<&str>,
        segment: &mut FaultySegment,
        handle: &FaultHandle,
        targets: &Targets,
    ) -> Result<Self, Failure> {
        let server = match open(robot, chosen, handle, targets) {
            Ok(server) => Some(server),
            Err(error) if chosen.is_some() => return Err(error.into()),
            Err(error) => {
                output::say(format_args!("no faults by `onbeat fault`: {error}"));
                None
            }
        };
        if let Some(server) = &server {
            let (name, path) = (server.name(), server.path().display());
            output::say(format_args!("faults on demand: `onbeat fault --of {name} ...`, at {path}"));
        }
        let (reports, targets) = (segment.reports(), targets.clone());
        let saying = OutputThread::start("faults", move |_| say(&reports, &targets)).ok();
        Ok(Self { _server: server, saying })
    }

    /// The segment is gone: says the last of it.
    pub(super) fn finish(self) {
        if let Some(saying) = self.saying {
            let _ = saying.finish(LAST_TIMEOUT);
        }
    }
}

/// Says what takes place until the segment is gone.
fn say(reports: &Receiver<Report>, targets: &Targets) {
    for Report { at, fault, .. } in reports {
        output::say(Notice::Fault { at, fault: fault.named(targets) });
    }
}
