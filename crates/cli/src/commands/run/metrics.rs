//! `run --metrics`: figures of the running cycle for Prometheus, asked for over HTTP.

mod figures;
mod http;
mod page;

use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};

use control::bus::PartNames;
use ipc::bus::Event;
use onbeat::Progress;
use robot::RobotConfig;

use self::figures::Counts;
use crate::failure::Failure;

/// Room for one page: the client waits for it.
type Answer = SyncSender<String>;

/// Figures of a run on request. A page is made on a request, by the thread that watches the cycle; an unasked one costs
/// nothing.
pub(super) struct Metrics {
    asked: Receiver<Answer>,
    robot: String,
    names: PartNames,
    counts: Counts,
}

impl Metrics {
    /// Listens at `address` from now on.
    ///
    /// # Errors
    /// An address that is not this machine's, or in use.
    pub(super) fn listen(
        address: SocketAddr,
        robot: &RobotConfig,
        names: PartNames,
    ) -> Result<Self, Failure> {
        let (ask, asked) = mpsc::sync_channel(1);
        http::serve(address, ask).map_err(|error| {
            Failure::new(format!(
                "--metrics {address}: {error}; expected an address of this machine with a free port, as 127.0.0.1:9464"
            ))
        })?;
        let counts = Counts::of(robot.axes.len());
        Ok(Self { asked, robot: robot.name.clone(), names, counts })
    }

    /// Counts an event.
    pub(super) fn event(&mut self, event: &Event) {
        self.counts.event(event);
    }

    /// Answers requests.
    pub(super) fn look(&self, progress: &Progress<'_>) {
        if let Ok(answer) = self.asked.try_recv() {
            let page = figures::page(&self.robot, &self.names, &self.counts, progress);
            // One that waits no more.
            let _ = answer.try_send(page);
        }
    }
}
