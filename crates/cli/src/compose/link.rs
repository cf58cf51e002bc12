//! The link between the MainDevice and its SubDevices: a network interface or the simulation, with
//! faults and a capture around it where they are asked for.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use robot::{Overrides, Robot};
use runtime::link::{
    Capture, FaultRates, Faults, Faulty, Link, OpenError, Owner, PacketLink, SimulatedLink,
};
use simulator::Segment;

use super::profile;
use super::segment::segment;
use crate::arguments::{self, Wire};
use crate::failure::Failure;
use crate::output;
use crate::words;

/// How long a network card may take to see the far end of its cable.
const CARRIER_PATIENCE: Duration = Duration::from_secs(5);

/// A link, and the capture that may be running on it.
pub(crate) enum RobotLink {
    Plain(Box<dyn Link + Send>),
    Captured { capture: Capture<Box<dyn Link + Send>>, path: PathBuf },
}

/// Reason for a link that was not opened.
#[derive(Debug)]
pub(crate) struct NotOpened {
    /// Program that has the interface, if that is why.
    pub(crate) owner: Option<Owner>,
    failure: Failure,
}

impl From<Failure> for NotOpened {
    fn from(failure: Failure) -> Self {
        Self { owner: None, failure }
    }
}

impl From<NotOpened> for Failure {
    fn from(not_opened: NotOpened) -> Self {
        not_opened.failure
    }
}

/// Opens the link `wire` asks for; `robot` is simulated unless `wire` names an interface or another
/// segment. An interface is ours alone: others are told that this program is `doing` something there.
pub(crate) fn open(robot: &Robot, wire: &Wire, doing: &str) -> Result<RobotLink, NotOpened> {
    let (link, name): (Box<dyn Link + Send>, &str) = match (&wire.iface, &wire.segment) {
        (Some(interface), _) => (Box::new(own(interface, doing).map_err(held)?), interface.as_str()),
        (None, Some(other)) => {
            let other = Robot::read(other, Overrides { period: Some(robot.cycle.period) })
                .map_err(Failure::from)?;
            (Box::new(simulated(segment(&other)?, robot)), "simulated")
        }
        (None, None) => (Box::new(simulated(segment(robot)?, robot)), "simulated"),
    };
    let link = if wire.faults.any() { Box::new(Faulty::new(link, faults(&wire.faults))) } else { link };
    match &wire.capture {
        None => Ok(RobotLink::Plain(link)),
        Some(path) => {
            let capture = Capture::create(link, path, name).map_err(|error| cannot_write(path, &error))?;
            Ok(RobotLink::Captured { capture, path: path.clone() })
        }
    }
}

/// An interface as its one MainDevice.
fn own(interface: &str, doing: &str) -> Result<PacketLink, OpenError> {
    let program = env::args_os().next().map(PathBuf::from);
    let program = program.as_deref().and_then(Path::file_name).unwrap_or("onbeat".as_ref());
    let doing = format!("{} {doing}", program.to_string_lossy());
    let link = PacketLink::open_as_owner(interface, CARRIER_PATIENCE, &doing)?;
    if let Some(squatter) = link.squatter() {
        output::say(words::owner::squatted(interface, squatter));
    }
    Ok(link)
}

/// The same, with the owner beside it.
fn held(error: OpenError) -> NotOpened {
    let owner = match &error {
        OpenError::Held { owner, .. } => Some(owner.clone()),
        _ => None,
    };
    NotOpened { owner, failure: error.into() }
}

/// A simulated network card is as punctual as the cycle: programs do not hold up a real one either.
fn simulated(segment: Segment, robot: &Robot) -> SimulatedLink<Segment> {
    SimulatedLink::with_scheduling(segment, profile::simulated(robot))
}

impl RobotLink {
    /// Completes the capture, if there is one, and says what is in it; a file that takes nothing any more is given up.
    pub(crate) fn finish(self) -> Result<Option<String>, Failure> {
        let Self::Captured { capture, path } = self else { return Ok(None) };
        let not_whole =
            |error| Failure::new(format!("{}: {error}: make room, or capture elsewhere", path.display()));
        let summary = capture.finish().map_err(not_whole)?;
        let missing = match summary.dropped {
            0 => String::new(),
            dropped => format!("; {dropped} more came too fast to be written"),
        };
        Ok(Some(format!("{} frames in {}{missing}", summary.written, path.display())))
    }
}

impl Link for RobotLink {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(link) => link.transmit(frame),
            Self::Captured { capture, .. } => capture.transmit(frame),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(link) => link.receive(buffer, timeout),
            Self::Captured { capture, .. } => capture.receive(buffer, timeout),
        }
    }
}

/// Frames are lost on either way; all else happens to replies, so that no SubDevice acts on it.
fn faults(asked: &arguments::Faults) -> Faults {
    // A frame goes both ways and must survive each.
    let loss = 1.0 - (1.0 - asked.loss).sqrt();
    let replies = FaultRates {
        loss,
        corrupt: asked.corrupt,
        duplicate: asked.duplicate,
        delay: asked.late,
        delay_by: asked.delay,
        reorder: asked.reorder,
    };
    Faults { requests: FaultRates { loss, ..FaultRates::default() }, replies, seed: asked.seed }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!(
        "{}: the capture cannot be written ({error}), expected a place for a new file: choose another path",
        path.display()
    ))
}
