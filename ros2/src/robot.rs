//! The robot behind the shared-memory interface: attach, read, command.

use std::path::Path;

use ipc::channel::Channel;
use ipc::client::{Client, FindError, LeaseError};
use ipc::command::{AxisTarget, Command, ToolPose, Twist, Writer};
use ipc::description::{ControllerDescription, Description};
use ipc::state::{self, State, Value};

use crate::clock::monotonic_ns;
use crate::options::Options;
use crate::voice::Voice;

/// Attachment to a running cycle.
pub(crate) struct Robot {
    ipc: Client,
    reader: state::Reader,
    state: State,
    commands: Commands,
}

/// Lease of the command region while commands are sent, and the time at which the last one goes
/// stale.
#[derive(Default)]
struct Commands {
    lease: Option<Writer>,
    stale_ns: u64,
    /// The last one that moves something.
    motion: Command,
    motion_stale_ns: u64,
}

/// Time for which the lease is kept after the last command has gone stale: a client that commands
/// ten times a second keeps it, and another program gets it soon.
const KEEP_LEASE_NS: u64 = 1_000_000_000;

impl Robot {
    /// Attaches to the cycle that the options name, or to the only one.
    ///
    /// # Errors
    /// No cycle, several cycles, or one of another version.
    pub(crate) fn attach(options: &Options) -> Result<Self, FindError> {
        let ipc = match &options.ipc {
            None => Client::find()?,
            Some(path) => match path.to_str() {
                Some(name) if !name.contains('/') && !name.ends_with(".sock") => Client::named(name)?,
                _ => Client::open(path)?,
            },
        };
        let reader = ipc.state();
        Ok(Self { ipc, reader, state: State::default(), commands: Commands::default() })
    }

    /// Description of the robot.
    pub(crate) fn description(&self) -> &Description {
        self.ipc.description()
    }

    /// Socket of the cycle.
    pub(crate) fn path(&self) -> &Path {
        self.ipc.path()
    }

    /// Process id of the cycle.
    pub(crate) fn process(&self) -> u32 {
        self.ipc.process()
    }

    /// User id of the cycle.
    pub(crate) fn user(&self) -> u32 {
        self.ipc.user()
    }

    /// True if the cycle has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ipc.has_ended()
    }

    /// Reads the state; `false` before the first cycle, and when it could not be read.
    pub(crate) fn refresh(&mut self) -> bool {
        self.reader.read_into(&mut self.state).is_ok()
    }

    /// State that was read last.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Active controller.
    pub(crate) fn active(&self) -> Option<&ControllerDescription> {
        self.description().controllers.get(usize::from(self.state.control.active))
    }

    /// Diagnostics of the cycle itself, if it publishes any.
    pub(crate) fn diagnostics(&self) -> Option<String> {
        self.ipc.diagnostics().ok()
    }

    /// Opens a port in non-blocking mode.
    ///
    /// # Errors
    /// The reason, as text.
    pub(crate) fn port(&self, name: &str) -> Result<Channel, String> {
        let channel = self.ipc.port(name).map_err(|error| error.to_string())?;
        channel.set_nonblocking(true).map_err(|error| format!("port `{name}`: {error}"))?;
        Ok(channel)
    }

    /// Commands a velocity of the base, for `seconds`.
    ///
    /// # Errors
    /// The reason against the command, as text.
    pub(crate) fn drive(&mut self, twist: Twist, seconds: f64) -> Result<(), String> {
        self.send(Command { twist: Some(twist), ..lasting(seconds) })
    }

    /// Commands a pose of the arm's tool, for `seconds`.
    ///
    /// # Errors
    /// The reason against the command, as text.
    pub(crate) fn move_tool(&mut self, pose: ToolPose, seconds: f64) -> Result<(), String> {
        self.send(Command { pose: Some(pose), ..lasting(seconds) })
    }

    /// Commands targets of axes, for `seconds`.
    ///
    /// # Errors
    /// The reason against the command, as text.
    pub(crate) fn move_axes(&mut self, axes: Vec<Option<AxisTarget>>, seconds: f64) -> Result<(), String> {
        self.send(Command { axes, ..lasting(seconds) })
    }

    /// Sets outputs for `seconds`. A commanded motion continues, but no longer than before: a
    /// command expires as a whole.
    ///
    /// # Errors
    /// The reason against the command, as text.
    pub(crate) fn set_outputs(&mut self, signals: Vec<Option<Value>>, seconds: f64) -> Result<(), String> {
        let now = monotonic_ns();
        let left = self.commands.motion_stale_ns.saturating_sub(now);
        let command = match left {
            0 => Command { signals, ..lasting(seconds) },
            _ => Command { signals, time_to_live_ns: left, ..self.commands.motion.clone() },
        };
        self.give(&command)
    }

    fn send(&mut self, command: Command) -> Result<(), String> {
        self.give(&command)?;
        self.commands.motion_stale_ns = self.commands.stale_ns;
        self.commands.motion = command;
        Ok(())
    }

    fn give(&mut self, command: &Command) -> Result<(), String> {
        let lease = match &mut self.commands.lease {
            Some(lease) => lease,
            none => none.insert(self.ipc.command().map_err(refused)?),
        };
        let sent = lease.send(command);
        if let Err(error) = sent {
            self.commands.lease = None;
            return Err(error.to_string());
        }
        self.commands.stale_ns = monotonic_ns().saturating_add(command.time_to_live_ns);
        Ok(())
    }

    /// Releases the lease: what was commanded goes stale at once.
    pub(crate) fn release(&mut self) {
        self.commands.lease = None;
    }

    /// Releases the lease a while after the last command has gone stale.
    pub(crate) fn release_if_idle(&mut self, voice: &Voice) {
        if self.commands.lease.is_some() && monotonic_ns() > self.commands.stale_ns + KEEP_LEASE_NS {
            self.commands.lease = None;
            voice.info("lease", "no commands for a while: the command lease is free again");
        }
    }
}

fn refused(error: LeaseError) -> String {
    format!("the robot takes no commands from here: {error}")
}

fn lasting(seconds: f64) -> Command {
    Command { time_to_live_ns: (seconds * 1e9) as u64, ..Command::default() }
}
