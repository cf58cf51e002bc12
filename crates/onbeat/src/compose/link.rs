//! The link between the MainDevice and its SubDevices: a network interface or the simulation, with
//! faults and a capture around it on request.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ethercat::link::Segment;
use ethercat::main_device::Event;
use ethercat::redundancy::Ring;
use ethercat::time::Instant;
use onbeat_ethercat_linux::bring_up::{BRING_UP_TIMEOUT, Pump};
use onbeat_ethercat_linux::link::{
    Capture, DirectEnd, DirectLink, FaultControl, Faults, Faulty, InterfaceLink, Link, LinkKind,
    PacketLink, Redundant, RingError, SimulatedLink,
};
use record::conditions::SIMULATED;
use robot::{FileError, Overrides, RobotConfig};
use rt::clock::{BusClock, Clock, MonotonicClock, VirtualClock};

use super::segment::{self, segment};
use crate::fault::{self, FaultReports, FaultySegment, ScriptErrors, script, socket};
use crate::{CaptureError, Error, Notice};

/// Place of the SubDevices, and additions to their link.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    /// Network interface; simulated without one.
    pub interface: Option<String>,
    /// Network interface at the other end of a ring.
    pub second_interface: Option<String>,
    /// Name of this program, for others that want the interface; `onbeat` without one.
    pub program: Option<String>,
    /// Way to the interface's frames.
    pub link: LinkKind,
    /// Takes the SubDevices from another MainDevice on the wire.
    pub take_over: bool,
    /// Robot file to simulate instead of the robot's own SubDevices.
    pub segment: Option<PathBuf>,
    /// File for every frame, sent and received.
    pub capture: Option<PathBuf>,
    /// Faults put on the link.
    pub faults: Option<Faults>,
    /// Script of faults of a simulated bus ([`crate::fault`]); its faults of frames take the place
    /// of `faults`.
    pub script: Option<PathBuf>,
    /// Name by which `onbeat fault` finds the simulated bus; without one it does not.
    pub control: Option<String>,
    /// Time of a simulated bus.
    pub time: SimulatedTime,
}

/// Time of a simulated bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimulatedTime {
    /// One period a cycle: a stall of the host stops the bus, too.
    #[default]
    Bus,
    /// Time of the host, in a separate thread: a stall of the cycle acts as on a wire.
    Host,
    /// One period a cycle, without a wait between cycles: the same run every time. No other program
    /// attaches.
    Fast,
}

impl SimulatedTime {
    /// Bus time at the start of a run, if it is independent of the computer's clock.
    #[must_use]
    pub fn start(self) -> Option<Instant> {
        (self == Self::Fast).then_some(FAST_START)
    }

    /// Clock of SubDevices with this time.
    fn clock(self) -> BusClock {
        match self {
            Self::Bus => BusClock::Simulated(VirtualClock::at(MonotonicClock.now())),
            Self::Host => BusClock::Host,
            Self::Fast => BusClock::Simulated(VirtualClock::at(FAST_START)),
        }
    }
}

/// Bus time at the start of each run that does not wait.
const FAST_START: Instant = Instant::from_nanos(1_000_000_000);

/// Time from a frame to its reply on a bus in this process.
const ROUND_TRIP: Duration = Duration::from_micros(20);

impl Wire {
    fn has_faults_on_demand(&self) -> bool {
        self.script.is_some() || self.control.is_some()
    }

    /// True of a simulated bus with cycles that do not wait for their releases.
    pub(crate) fn is_fast(&self) -> bool {
        self.interface.is_none() && self.time == SimulatedTime::Fast
    }

    /// True of a simulated bus that waits for its cycle: a late cycle does not affect it.
    pub(crate) fn is_in_bus_time(&self) -> bool {
        self.interface.is_none() && self.time != SimulatedTime::Host
    }

    /// True if frames may be lost, late or changed on purpose.
    #[must_use]
    pub fn has_faults(&self) -> bool {
        self.faults.is_some() || self.has_faults_on_demand()
    }
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
/// segment, and lives by the host's time then. An interface is ours alone: others see what this
/// program is `doing` there.
///
/// # Errors
/// An interface that is missing, down or taken; a robot that cannot be simulated; a capture that
/// cannot be written.
pub fn open(
    robot: &RobotConfig,
    wire: &Wire,
    doing: &str,
    tell: &mut dyn FnMut(&Notice),
) -> Result<RobotLink, Error> {
    let wire = Wire { time: SimulatedTime::Host, ..wire.clone() };
    open_with_faults(robot, &wire, doing, tell).map(|opened| opened.link)
}

/// A link, and what there is to know of it.
pub(crate) struct Opened {
    pub(crate) link: RobotLink,
    /// Clock that it lives by.
    pub(crate) clock: BusClock,
    /// Its name in the conditions of a run.
    pub(crate) name: String,
    /// Reports of the faults of a script.
    pub(crate) faults: Option<FaultReports>,
}

/// The same, with all of it.
pub(crate) fn open_with_faults(
    robot: &RobotConfig,
    wire: &Wire,
    doing: &str,
    tell: &mut dyn FnMut(&Notice),
) -> Result<Opened, Error> {
    let (mut reports, mut way) = (None, SIMULATED.to_owned());
    let clock = if wire.interface.is_some() { BusClock::Host } else { wire.time.clock() };
    let (link, name): (Box<dyn Link + Send>, &str) = match (&wire.interface, &wire.segment) {
        (Some(interface), _) if wire.has_faults_on_demand() => return Err(not_simulated(interface, wire)),
        (Some(interface), _) => {
            let doing = format!("{} {doing}", wire.program.as_deref().unwrap_or("onbeat"));
            let link;
            (link, way) = at_interface(robot, interface, wire, &doing, tell)?;
            (link, interface.as_str())
        }
        (None, Some(other)) => {
            let other = RobotConfig::read(
                other,
                Overrides { period: Some(robot.cycle.period), ..Overrides::default() },
            )?;
            (simulated(&other, robot, wire, &clock, &mut reports)?, SIMULATED)
        }
        (None, None) => (simulated(robot, robot, wire, &clock, &mut reports)?, SIMULATED),
    };
    let link = match &wire.faults {
        Some(faults) if !wire.has_faults_on_demand() => {
            Box::new(Faulty::with_clock(link, *faults, clock.clone()))
        }
        _ => link,
    };
    let link = match &wire.capture {
        None => RobotLink::Plain(link),
        Some(path) => {
            let capture = Capture::create(link, path, name)
                .map_err(|source| CaptureError::File { path: path.clone(), source })?;
            RobotLink::Captured { capture, path: path.clone() }
        }
    };
    // Frames lost on purpose count as no delay.
    let name = if wire.has_faults() { format!("{way}, with faults") } else { way };
    Ok(Opened { link, clock, name, faults: reports })
}

/// The interface, or both ends of a ring; and its name in the conditions of a run.
fn at_interface(
    robot: &RobotConfig,
    interface: &str,
    wire: &Wire,
    doing: &str,
    tell: &mut dyn FnMut(&Notice),
) -> Result<(Box<dyn Link + Send>, String), Error> {
    let Some(second) = wire.second_interface.as_deref() else {
        if robot.bus.ring {
            return Err(RingError::OneInterface { interface: interface.to_owned() }.into());
        }
        let link = InterfaceLink::open_as_owner(interface, wire.link, PacketLink::CARRIER_TIMEOUT, doing)?;
        tell_of(interface, wire.link, &link, tell);
        let name = format!("{interface} ({})", way(&link));
        return Ok((Box::new(link), name));
    };
    if interface == second {
        return Err(RingError::SameInterface { interface: interface.to_owned() }.into());
    }
    let names = [interface, second];
    let ends = InterfaceLink::open_ring(names, wire.link, PacketLink::CARRIER_TIMEOUT, doing)?;
    tell_of(interface, wire.link, &ends.0, tell);
    tell_of(second, wire.link, &ends.1, tell);
    let name = format!("{interface} and {second}, a ring ({})", way(&ends.0));
    let mut ring = Redundant::new(ends.0, ends.1).with_wait(robot.cycle.period / 2);
    ring.check(names)?;
    Ok((Box::new(ring), name))
}

/// Way to an interface's frames, in words.
fn way(link: &InterfaceLink) -> String {
    if let InterfaceLink::Xdp(_) = link { link.to_string() } else { "AF_PACKET".to_owned() }
}

/// The segment on a separate thread, at both ends if it is a ring.
fn on_thread<S: Segment + 'static>(segment: S, is_ring: bool, robot: &RobotConfig) -> Box<dyn Link + Send> {
    let scheduling = segment::scheduling(robot);
    if !is_ring {
        return Box::new(SimulatedLink::with_scheduling(segment, scheduling));
    }
    let (first, second) = SimulatedLink::ring(segment, scheduling);
    Box::new(Redundant::new(first, second).with_wait(robot.cycle.period / 2))
}

/// The segment on the thread that sends the frames, at both ends where it is a ring.
fn in_process<S: Segment + 'static>(
    segment: S,
    is_ring: bool,
    robot: &RobotConfig,
    clock: VirtualClock,
) -> Box<dyn Link + Send> {
    if !is_ring {
        return Box::new(DirectLink::new(segment, clock, ROUND_TRIP));
    }
    let [first, second] = DirectEnd::ring(segment, clock.clone(), ROUND_TRIP);
    Box::new(Redundant::with_clock(first, second, clock).with_wait(robot.cycle.period / 2))
}

/// The segment, in bus time or in the host's.
fn on_link<S: Segment + 'static>(
    segment: S,
    is_ring: bool,
    robot: &RobotConfig,
    clock: &BusClock,
) -> Box<dyn Link + Send> {
    match clock {
        BusClock::Host => on_thread(segment, is_ring, robot),
        BusClock::Simulated(clock) => in_process(segment, is_ring, robot, clock.clone()),
    }
}

/// Reports the kind of link of an interface, and the user that blocks its lock.
fn tell_of(interface: &str, kind: LinkKind, link: &InterfaceLink, tell: &mut dyn FnMut(&Notice)) {
    if kind != LinkKind::Packet {
        tell(&Notice::Link { interface: interface.to_owned(), link: link.to_string() });
    }
    if let Some(squatter) = link.squatter() {
        tell(&Notice::Squatter { interface: interface.to_owned(), owner: squatter.clone() });
    }
}

/// Simulated SubDevices. In the host's time their network card is as punctual as the cycle of
/// `robot`: programs do not hold up a real one either.
fn simulated(
    described: &RobotConfig,
    robot: &RobotConfig,
    wire: &Wire,
    clock: &BusClock,
    reports: &mut Option<FaultReports>,
) -> Result<Box<dyn Link + Send>, Error> {
    let mut segment = segment(described)?;
    let is_ring = described.bus.ring;
    if !wire.has_faults_on_demand() {
        return Ok(on_link(segment, is_ring, robot, clock));
    }
    let targets = fault::targets(described, &mut segment);
    let script = wire.script.as_deref().map(|path| script::read(path, &targets)).transpose()?;
    let (control, changes) = FaultControl::pair();
    let (mut segment, handle) = FaultySegment::new(segment, control, &script.unwrap_or_default());
    let name = wire.control.as_deref();
    let server = name.map(|name| socket::open(described, Some(name), &handle, &targets)).transpose()?;
    *reports = Some(FaultReports::of(&mut segment, targets, server));
    let link = on_link(segment, is_ring, robot, clock);
    let faults = wire.faults.unwrap_or_default();
    Ok(Box::new(Faulty::with_clock(link, faults, clock.clone()).changed_by(changes)))
}

fn not_simulated(interface: &str, wire: &Wire) -> Error {
    let file = wire.script.as_deref().unwrap_or(Path::new("--control")).display().to_string();
    let errors = vec![FileError {
        file,
        place: None,
        found: format!("faults for the SubDevices on interface {interface}"),
        expected: "simulated SubDevices".to_owned(),
        remedy: "give it to the `onbeat simulate` at the other end".to_owned(),
    }];
    ScriptErrors { errors }.into()
}

impl RobotLink {
    /// Completes the capture, if there is one, and reports its content; a file that takes no more
    /// data is abandoned.
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

    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        match self {
            Self::Plain(link) => link.receive_in_place(buffer, take),
            Self::Captured { capture, .. } => capture.receive_in_place(buffer, take),
        }
    }

    fn ring(&self) -> Option<Ring> {
        match self {
            Self::Plain(link) => link.ring(),
            Self::Captured { capture, .. } => capture.ring(),
        }
    }

    fn take_simulation_time(&mut self) -> Duration {
        match self {
            Self::Plain(link) => link.take_simulation_time(),
            Self::Captured { capture, .. } => capture.take_simulation_time(),
        }
    }
}

/// Brings the bus to PreOp, if it is no other MainDevice's or is to be taken over; `tell` is called
/// with these.
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
    Ok(pump.bring_up(BRING_UP_TIMEOUT, |event| {
        if let Event::OtherMainDevice { source, frames } = event {
            tell(&Notice::OtherMainDevice { source: *source, frames: *frames });
        }
    })?)
}
