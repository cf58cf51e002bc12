//! The robot behind the seam: attached to, read, commanded.

use bridge::attach::{Attachment, FindError, LeaseError};
use bridge::channel::Channel;
use bridge::command::{AxisTarget, Command, Twist, Writer};
use bridge::description::{ControllerDescription, Description};
use bridge::state::{self, State};

use crate::clock::monotonic_ns;
use crate::options::Options;
use crate::voice::Voice;

/// A running cycle, attached to.
pub(crate) struct Robot {
    seam: Attachment,
    reader: state::Reader,
    state: State,
    commands: Commands,
}

/// The lease of the command region while something is asked, and when the last that was asked goes stale.
#[derive(Default)]
struct Commands {
    lease: Option<Writer>,
    stale_ns: u64,
}

/// After the last command has gone stale the lease is kept so long: whoever asks ten times a second keeps it, and a
/// program of another kind gets it soon.
const KEEP_LEASE_NS: u64 = 1_000_000_000;

impl Robot {
    /// The cycle that the options name, or the one there is.
    ///
    /// # Errors
    /// There is none, or several, or it is of another version.
    pub(crate) fn attach(options: &Options) -> Result<Self, FindError> {
        let seam = match &options.seam {
            None => Attachment::find()?,
            Some(path) => match path.to_str() {
                Some(name) if !name.contains('/') && !name.ends_with(".sock") => Attachment::named(name)?,
                _ => Attachment::open(path)?,
            },
        };
        let reader = seam.state();
        Ok(Self { seam, reader, state: State::default(), commands: Commands::default() })
    }

    /// What it is.
    pub(crate) fn description(&self) -> &Description {
        self.seam.description()
    }

    /// The process that runs it.
    pub(crate) fn process(&self) -> u32 {
        self.seam.process()
    }

    /// The user who does.
    pub(crate) fn user(&self) -> u32 {
        self.seam.user()
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.seam.has_ended()
    }

    /// Reads how it stands; `false` before its first beat, and when it could not be read.
    pub(crate) fn refresh(&mut self) -> bool {
        self.reader.read_into(&mut self.state).is_ok()
    }

    /// How it stood when it was last read.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The controller that is active.
    pub(crate) fn active(&self) -> Option<&ControllerDescription> {
        self.description().controllers.get(usize::from(self.state.control.active))
    }

    /// What it tells of itself, if it does.
    pub(crate) fn diagnostics(&self) -> Option<String> {
        self.seam.diagnostics().ok()
    }

    /// Opens a port; reads and writes do not wait.
    ///
    /// # Errors
    /// Why not, for people.
    pub(crate) fn port(&self, name: &str) -> Result<Channel, String> {
        let channel = self.seam.port(name).map_err(|error| error.to_string())?;
        channel.set_nonblocking(true).map_err(|error| format!("port `{name}`: {error}"))?;
        Ok(channel)
    }

    /// Asks the base for a velocity, for `seconds`.
    ///
    /// # Errors
    /// Why nothing was asked, for people.
    pub(crate) fn drive(&mut self, twist: Twist, seconds: f64) -> Result<(), String> {
        self.send(Command { twist: Some(twist), ..lasting(seconds) })
    }

    /// Asks axes for targets, for `seconds`.
    ///
    /// # Errors
    /// Why nothing was asked, for people.
    pub(crate) fn move_axes(&mut self, axes: Vec<Option<AxisTarget>>, seconds: f64) -> Result<(), String> {
        self.send(Command { axes, ..lasting(seconds) })
    }

    fn send(&mut self, command: Command) -> Result<(), String> {
        let lease = match &mut self.commands.lease {
            Some(lease) => lease,
            none => none.insert(self.seam.command().map_err(refused)?),
        };
        let sent = lease.send(&command);
        if let Err(error) = sent {
            self.commands.lease = None;
            return Err(error.to_string());
        }
        self.commands.stale_ns = monotonic_ns().saturating_add(command.time_to_live_ns);
        Ok(())
    }

    /// Gives the lease back a while after the last command went stale.
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
