//! Event loop: attaches to a cycle and runs the node, until it is stopped.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipc::channel::Channel;
use ipc::description::Description;
use rustdds::mio1::Events as Ready;
use rustdds::mio1::unix::SourceFd;
use rustdds::mio1::{Interest, Poll, Token};
use thiserror::Error;

use super::bus::Bus;
use super::commands::Commands;
use super::control::Control;
use super::diagnostics::Diagnostics;
use super::events::Events;
use super::lifecycle::Managed;
use super::manager::JOINT_STATES;
use super::parameters::Parameters;
use super::sensors::Sensors;
use super::signals::Signals;
use super::states::States;
use super::trajectories::Trajectories;
use super::velocity::Velocity;
use super::{Endpoints, Moment, Timer};
use crate::clock::monotonic_ns;
use crate::dds::name::NodeName;
use crate::dds::{DdsError, Participant, Quality, Reader};
use crate::lifecycle::Lifecycle;
use crate::options::Options;
use crate::robot::Robot;
use crate::settings::Settings;
use crate::voice::Voice;
use crate::watchdog;

/// Reason for the end of the program.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// The command line.
    #[error("{0}")]
    Options(String),
    /// DDS.
    #[error(transparent)]
    Dds(#[from] DdsError),
    /// Waiting for events.
    #[error("cannot wait for messages: {0}")]
    Wait(#[from] std::io::Error),
}

/// Runs the node until `stop`.
///
/// # Errors
/// An error that waiting does not cure: an invalid option, no socket.
pub(crate) fn run(options: &Options, stop: &AtomicBool) -> Result<(), Error> {
    let name = NodeName::new(&options.namespace, &options.node_name).map_err(Error::Options)?;
    let name = name.remapped(&options.ros.rules);
    let voice = Voice::new(options.quiet, &options.ros, name.to_string());
    let mut settings = Settings::default();
    for assignment in &options.ros.assignments {
        let warning = assignment.apply(&name, &mut settings).map_err(Error::Options)?;
        warning.iter().for_each(|warning| eprintln!("onbeat-ros2: {warning}"));
    }
    let mut lifecycle = Lifecycle::new(settings.autostart);
    let mut node: Option<Node> = None;
    let mut robot = attach(options, &voice, &mut String::new());
    while !stop.load(Ordering::Relaxed) {
        let description = robot.as_ref().map(|robot| robot.description().clone());
        let current = match node.take() {
            // The same robot again: subscribers need not rediscover the node.
            Some(node)
                if description.as_ref().is_none_or(|description| *description == node.description) =>
            {
                node
            }
            other => {
                voice.on_rosout(None);
                drop(other);
                Node::new(options, &name, description.unwrap_or_default(), &voice)?
            }
        };
        // The /rosout of the node with this robot's topics reports the attachment.
        if let Some(robot) = &robot {
            tell_attached(robot, options, &voice);
        }
        let own = Own { options, settings: &mut settings, voice: &voice, lifecycle: &mut lifecycle };
        robot = node.insert(current).turn(robot, own, stop)?;
    }
    Ok(())
}

/// The node's own state, which outlives its readers and writers.
struct Own<'a> {
    options: &'a Options,
    settings: &'a mut Settings,
    voice: &'a Voice,
    lifecycle: &'a mut Lifecycle,
}

fn tell_attached(robot: &Robot, options: &Options, voice: &Voice) {
    let about = robot.description();
    let controllers: Vec<&str> = about.controllers.iter().map(|it| it.name.as_str()).collect();
    voice.info(
        "attached",
        format_args!(
            "attached to `{}` of process {}, user {}: {} axes, controllers {}; DDS domain {}",
            about.robot,
            robot.process(),
            robot.user(),
            about.axes.len(),
            controllers.join(", "),
            options.domain
        ),
    );
}

/// Attaches, if a cycle runs; logs the reason against it, if that differs from `last`.
fn attach(options: &Options, voice: &Voice, last: &mut String) -> Option<Robot> {
    match Robot::attach(options) {
        Ok(robot) => Some(robot),
        Err(error) => {
            let why = error.to_string();
            if *last != why {
                voice.info("waiting", format_args!("waiting for a running cycle: {why}"));
                *last = why;
            }
            None
        }
    }
}

/// Attempts to attach per second.
const ATTACH_RATE: f64 = 2.0;

/// A node for one robot.
struct Node {
    description: Description,
    // The parts are dropped before the participant they belong to.
    velocity: Velocity,
    commands: Commands,
    trajectories: Trajectories,
    control: Control,
    bus: Bus,
    parameters: Parameters,
    states: States,
    sensors: Sensors,
    signals: Signals,
    diagnostics: Diagnostics,
    events: Events,
    managed: Managed,
    poll: Poll,
    participant: Participant,
}

impl Node {
    fn new(
        options: &Options,
        name: &NodeName,
        description: Description,
        voice: &Voice,
    ) -> Result<Self, Error> {
        let mut participant = Participant::new(options.domain, options.reach(), name.clone())?;
        let mut endpoints = Endpoints { participant: &mut participant, mapping: options.service_mapping };
        let endpoints = &mut endpoints;
        let rosout = options.ros.rosout;
        let rosout = rosout.then(|| endpoints.publish("/rosout", "rcl_interfaces/Log", Quality::Log));
        voice.on_rosout(rosout.transpose()?);
        let mut node = Self {
            velocity: Velocity::new(endpoints, &description)?,
            commands: Commands::new(endpoints, &description)?,
            trajectories: Trajectories::new(endpoints, &description)?,
            control: Control::new(endpoints, &description)?,
            bus: Bus::new(endpoints)?,
            parameters: Parameters::new(endpoints)?,
            states: States::new(endpoints, &description)?,
            sensors: Sensors::new(endpoints, &description)?,
            signals: Signals::new(endpoints, &description)?,
            diagnostics: Diagnostics::new(endpoints)?,
            events: Events::new(endpoints)?,
            managed: Managed::new(endpoints)?,
            poll: Poll::new()?,
            description,
            participant,
        };
        node.register()?;
        node.participant.announce();
        Ok(node)
    }

    /// Registers every reader with the poll; a wake-up checks all of them.
    fn register(&mut self) -> std::io::Result<()> {
        let mut readers: Vec<&mut Reader> = self.velocity.readers();
        readers.extend(self.commands.readers());
        readers.extend(self.trajectories.readers());
        let services = self.control.services().into_iter().chain(self.bus.services());
        let services = services.chain(self.parameters.services()).chain(self.managed.services());
        readers.extend(services.map(crate::dds::service::Service::requests));
        let registry = self.poll.registry();
        readers
            .into_iter()
            .enumerate()
            .try_for_each(|(index, reader)| reader.register(registry, Token(index)))
    }

    /// Runs until the cycle ends, a cycle starts, or `stop`; returns the robot that is attached
    /// then.
    fn turn(
        &mut self,
        mut robot: Option<Robot>,
        own: Own<'_>,
        stop: &AtomicBool,
    ) -> Result<Option<Robot>, Error> {
        let Own { options, settings, voice, lifecycle } = own;
        let name = self.participant.node().clone();
        let mut ready = Ready::with_capacity(64);
        let (mut look, mut reason) = (Timer::default(), String::new());
        while !stop.load(Ordering::Relaxed) {
            watchdog::turn();
            let now = monotonic_ns();
            if robot.as_ref().is_some_and(Robot::has_ended) {
                voice.warn("ended", "the cycle has ended");
                robot = None;
                self.lost("the cycle has ended");
            }
            if robot.is_none() && look.due(now, ATTACH_RATE) {
                robot = attach(options, voice, &mut reason);
                if let Some(robot) = robot.take_if(|robot| *robot.description() != self.description) {
                    return Ok(Some(robot));
                }
                if let Some(robot) = &robot {
                    tell_attached(robot, options, voice);
                }
            }
            let moment = &mut Moment { robot: robot.as_mut(), settings, voice, lifecycle, node: &name };
            self.control.poll(moment);
            if self.managed.poll(moment, &mut self.control) {
                self.trajectories.lost();
                self.sensors.lost();
            }
            self.bus.poll(moment);
            self.parameters.poll(moment);
            self.diagnostics.poll(moment, now);
            self.events.poll(moment);
            let is_configured = moment.lifecycle.is_configured();
            moment.robot.take_if(|_| !is_configured);
            self.velocity.poll(moment);
            self.commands.poll(moment);
            self.trajectories.poll(moment, now);
            let broadcasts = |name: &str| self.control.broadcasts(name);
            self.states.poll(moment, now, broadcasts(JOINT_STATES));
            self.sensors.poll(moment, now);
            self.signals.poll(moment, now, broadcasts);
            if let Some(robot) = &mut robot {
                robot.release_if_idle(voice);
            }
            self.participant.poll();
            self.wait(&mut ready, robot.is_some() && is_configured)?;
        }
        // The cycle first: DDS may take long.
        drop(robot);
        self.lost("onbeat-ros2 ends");
        Ok(None)
    }

    /// Returns the resources of a cycle; waiting clients get `why`.
    fn lost(&mut self, why: &str) {
        self.trajectories.lost();
        self.control.lost(why);
        self.sensors.lost();
    }

    /// Waits for samples, messages of ports and timers.
    fn wait(&mut self, ready: &mut Ready, attached: bool) -> std::io::Result<()> {
        let channels =
            self.sensors.channels().chain(self.trajectories.channel()).chain(self.control.channels());
        for channel in channels {
            watch(&self.poll, channel)?;
        }
        let mut due = self.diagnostics.next().min(self.control.next(monotonic_ns()).unwrap_or(u64::MAX));
        if attached {
            due = due
                .min(self.states.next())
                .min(self.signals.next())
                .min(self.trajectories.next().unwrap_or(u64::MAX));
        }
        let is_pressed = self.trajectories.is_pressed()
            || self.bus.is_waiting()
            || self.events.is_pressed()
            || self.participant.is_waiting();
        let longest = if is_pressed { PRESSED } else { LONGEST };
        let rest = Duration::from_nanos(due.saturating_sub(monotonic_ns())).min(longest);
        // epoll counts in milliseconds, and would be up to one late: the rest of less than one is
        // slept.
        let whole = Duration::from_millis(rest.as_millis() as u64);
        if whole.is_zero() {
            std::thread::sleep(rest);
        }
        match self.poll.poll(ready, Some(whole)) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            other => other,
        }
    }
}

/// Longest wait, and the one while orders wait for room, replies for their readers, or the bus is
/// asked.
const LONGEST: Duration = Duration::from_millis(100);
const PRESSED: Duration = Duration::from_millis(1);

/// Adds a port to the poll. Ports are opened and closed; epoll removes a closed descriptor by
/// itself. Each open port is added at every turn, and is already there except at the first.
fn watch(poll: &Poll, channel: &Channel) -> std::io::Result<()> {
    let descriptor = channel.as_raw_fd();
    match poll.registry().register(&mut SourceFd(&descriptor), PORT, Interest::READABLE) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Token of all ports.
const PORT: Token = Token(usize::MAX - 1);
