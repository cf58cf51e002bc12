//! The controller process of the experiment: `onbeat-measure answer`, attached as any program
//! attaches.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStdout, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ethercat::time::Instant;
use ipc::client::Client;
use ipc::command::AxisTarget;
use ipc::controller::{Answer, Controller, DriveRequest, Request, Waited};
use ipc::units::Radians;
use rt::clock::{Clock, MonotonicClock};
use rt::profile::{Granted, RealTimeProfile};

use crate::child::ChildProcess;
use crate::thread::real_time;
use crate::{Context, Error};

/// The process, as the experiment that started it sees it; dropping it kills it.
pub(super) struct Process {
    child: ChildProcess,
    said: BufReader<ChildStdout>,
    /// Real-time settings that the system refused to it.
    pub(super) refusals: Vec<String>,
}

impl Process {
    /// Starts it, and returns once it is the controller of the cycle at this socket.
    ///
    /// # Errors
    /// It cannot be started or attached.
    pub(super) fn start(context: &Context, socket: &Path, priority: Option<u8>) -> Result<Self, Error> {
        let mut command = Command::new(&context.programs.measure);
        command.args(["answer", "--with-parent"]).arg(socket);
        if let Some(priority) = priority {
            command.arg("--priority").arg(priority.to_string());
        }
        let mut child = ChildProcess::start(command)?;
        let output = child.take_output().ok_or_else(|| child.error("has no output".into()))?;
        let mut said = BufReader::new(output);
        let mut refusals = Vec::new();
        loop {
            let mut line = String::new();
            said.read_line(&mut line).map_err(|error| child.error(error.to_string()))?;
            match line.trim_end() {
                READY => return Ok(Self { child, said, refusals }),
                "" => return Err(child.finish().err().unwrap_or_else(|| Error::other("it said nothing"))),
                refusal => refusals.push(refusal.to_owned()),
            }
        }
    }

    /// Instants at which it saw the first signal change, once the cycle has closed its interface.
    ///
    /// # Errors
    /// The process failed, or printed something else.
    pub(super) fn finish(mut self) -> Result<Vec<Instant>, Error> {
        let mut text = String::new();
        let read = self.said.read_to_string(&mut text);
        read.map_err(|error| self.child.error(error.to_string()))?;
        let stamps =
            text.lines().map(|line| line.parse().map(Instant::from_nanos)).collect::<Result<_, _>>();
        let stamps = stamps.map_err(|error| self.child.error(format!("printed no instants: {error}")))?;
        self.child.finish().map(|()| stamps)
    }
}

/// Line with which it says that it is the controller.
pub const READY: &str = "ready";

/// Its own side.
#[derive(Debug)]
pub struct Answering {
    controller: Controller,
    granted: Granted,
}

impl Answering {
    /// Becomes the controller of the cycle at this socket, with this `SCHED_FIFO` priority, or as
    /// an ordinary process.
    ///
    /// # Errors
    /// It cannot attach, or another process is the controller.
    pub fn begin(socket: &Path, priority: Option<u8>) -> Result<Self, Error> {
        let controller = Client::open(socket).map_err(Error::other)?.controller().map_err(Error::other)?;
        let fifo = |priority| RealTimeProfile { cpu: None, ..real_time(Some(priority), 0) };
        let granted = Granted::ask(&priority.map_or(RealTimeProfile::ORDINARY, fifo));
        Ok(Self { controller, granted })
    }

    /// Real-time settings that the system refused, a sentence each.
    pub fn refusals(&self) -> impl Iterator<Item = String> + '_ {
        self.granted.refusals()
    }

    /// Answers until the cycle ends, or `stop` is set; instants at which the first signal changed.
    pub fn serve(mut self, stop: &AtomicBool) -> Vec<Instant> {
        let mut seen = Vec::with_capacity(1 << 12);
        let mut last = 0;
        while !stop.load(Ordering::Relaxed) {
            let turn = match self.controller.wait_for(LOOK) {
                Waited::Asked(turn) => turn,
                Waited::TimedOut => continue,
                Waited::Ended => break,
            };
            let level = turn.request.signals.first().map_or(0, |signal| signal.word);
            if std::mem::replace(&mut last, level) != level {
                seen.push(MonotonicClock.now());
            }
            control(turn.request, turn.answer);
            turn.send();
        }
        seen
    }
}

/// The same small controller in every place: each axis is asked to where it is, and the last signal
/// copies the first.
pub(super) fn control(request: &Request, answer: &mut Answer) {
    for (axis, answer) in request.axes.iter().zip(&mut answer.axes) {
        answer.request = Some(DriveRequest::Enable);
        answer.target = Some(AxisTarget::Position(Radians(axis.position)));
    }
    if let (Some(signal), Some(output)) = (request.signals.first(), answer.outputs.last_mut()) {
        *output = Some(signal.word);
    }
}

/// Time after which it looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
