//! The link between the MainDevice and its SubDevices: a network interface or the simulation, with
//! faults and a capture around it where they are asked for.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use control::bring_up::{BRING_UP_PATIENCE, Pump};
use control::clock::Clock;
use control::link::{Capture, Faults, Faulty, Link, PacketLink, SimulatedLink};
use ethercat::main_device::Event;
use robot::{Overrides, Robot};
use simulator::Segment;

use super::profile;
use super::segment::segment;
use crate::{CaptureError, Error, Notice};

/// Time a network card may take to see the far end of its cable.
const CARRIER_PATIENCE: Duration = Duration::from_secs(5);

/// Place of the SubDevices, and additions to their link.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Network interface; simulated without one.
    pub interface: Option<String>,
    /// Takes the SubDevices from another MainDevice that is heard.
    pub take_over: bool,
    /// Robot file to simulate instead of the robot's own SubDevices.
    pub segment: Option<PathBuf>,
    /// File for every frame, sent and received.
    pub capture: Option<PathBuf>,
    /// Faults put on the link.
    pub faults: Option<Faults>,
}

/// Link of a robot.
pub enum RobotLink {
    /// Interface or simulation.
    Plain(Box<dyn Link + Send>),
    /// The same with a capture.
    Captured {
        /// Capture that runs.
        capture: Capture<Box<dyn Link + Send>>,
        /// Its file.
        path: PathBuf,
    },
}

/// Opens the link `wire` asks for; `robot` is simulated unless `wire` names an interface or another
/// segment. An interface is ours alone: others are told that this program is `doing` something there.
///
/// # Errors
/// An interface that is not there, not up or taken; a robot that cannot be simulated; a capture that cannot be written.
pub fn open(
    robot: &Robot,
    wire: &Wire,
    doing: &str,
    tell: &mut dyn FnMut(&Notice),
) -> Result<RobotLink, Error> {
    let (link, name): (Box<dyn Link + Send>, &str) = match (&wire.interface, &wire.segment) {
        (Some(interface), _) => (Box::new(own(interface, doing, tell)?), interface.as_str()),
        (None, Some(other)) => {
            let other = Robot::read(other, Overrides { period: Some(robot.cycle.period) })?;
            (Box::new(simulated(segment(&other)?, robot)), "simulated")
        }
        (None, None) => (Box::new(simulated(segment(robot)?, robot)), "simulated"),
    };
    let link = match &wire.faults {
        Some(faults) => Box::new(Faulty::new(link, *faults)),
        None => link,
    };
    match &wire.capture {
        None => Ok(RobotLink::Plain(link)),
        Some(path) => {
            let capture = Capture::create(link, path, name)
                .map_err(|source| CaptureError::File { path: path.clone(), source })?;
            Ok(RobotLink::Captured { capture, path: path.clone() })
        }
    }
}

/// An interface as its one MainDevice.
fn own(interface: &str, doing: &str, tell: &mut dyn FnMut(&Notice)) -> Result<PacketLink, Error> {
    let program = env::args_os().next().map(PathBuf::from);
    let program = program.as_deref().and_then(Path::file_name).unwrap_or("onbeat".as_ref());
    let doing = format!("{} {doing}", program.to_string_lossy());
    let link = PacketLink::open_as_owner(interface, CARRIER_PATIENCE, &doing)?;
    if let Some(squatter) = link.squatter() {
        tell(&Notice::Squatter { interface: interface.to_owned(), owner: squatter.clone() });
    }
    Ok(link)
}

/// A simulated network card is as punctual as the cycle: programs do not hold up a real one either.
fn simulated(segment: Segment, robot: &Robot) -> SimulatedLink<Segment> {
    SimulatedLink::with_scheduling(segment, profile::simulated(robot))
}

impl RobotLink {
    /// Completes the capture, if there is one, and says what is in it; a file that takes nothing any more is given up.
    ///
    /// # Errors
    /// A capture that is not whole.
    pub fn finish(self) -> Result<Option<String>, Error> {
        let Self::Captured { capture, path } = self else { return Ok(None) };
        let summary =
            capture.finish().map_err(|source| CaptureError::NotWhole { path: path.clone(), source })?;
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

/// Brings the bus to PreOp, if it is no other MainDevice's or is to be taken over; `tell` hears of these.
///
/// # Errors
/// Another MainDevice on the wire, or a bus that is not as described.
pub fn bring_up<L: Link, C: Clock>(
    pump: &mut Pump<'_, L, C>,
    wire: &Wire,
    tell: &mut dyn FnMut(&Notice),
) -> Result<(), Error> {
    // A simulated bus is out of reach of others.
    if wire.interface.is_some() && !wire.take_over {
        pump.listen()?;
    }
    Ok(pump.bring_up(BRING_UP_PATIENCE, |event| {
        if let Event::OtherMainDevice { source, frames } = event {
            tell(&Notice::OtherMainDevice { source: *source, frames: *frames });
        }
    })?)
}
