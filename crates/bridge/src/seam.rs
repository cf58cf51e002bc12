//! The side of the process that runs the cycle.
//!
//! ```no_run
//! use onbeat_bridge::channel::Kind;
//! use onbeat_bridge::description::Description;
//! use onbeat_bridge::state::State;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut seam = onbeat_bridge::seam::Builder::new("m4k", &Description::default());
//! let mut imu = seam.port("imu", Kind::Message { size: 64, depth: 16 })?;
//! let (mut ends, door) = seam.open()?;
//! // On the real-time thread, once and then every beat:
//! imu.bind();
//! let mut command = ends.command.blank();
//! ends.command.newest(&mut command);
//! ends.state.publish(&State::default());
//! # drop(door); Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::channel::far::Far;
use crate::channel::{self, Kind, Port};
use crate::command::Regions;
use crate::description::Description;
use crate::door::protocol::LONGEST_NAME;
use crate::door::{Handed, Serve};
use crate::{command, diagnostics, place, state};

pub use crate::door::Door;
pub use crate::place::PlaceError;

/// A seam to be.
#[derive(Debug)]
pub struct Builder {
    name: String,
    description: Description,
    folder: Option<PathBuf>,
    mode: u32,
    group: Option<u32>,
    look: Duration,
    ports: Vec<Far>,
}

/// What the real-time thread keeps.
#[derive(Debug)]
pub struct RealTimeEnds {
    /// Says how the cycle stands.
    pub state: state::Writer,
    /// Hears what is asked.
    pub command: command::Reader,
}

impl Builder {
    /// A seam of this name, for a robot of so many axes as the description has. Its ports are added to those of the
    /// description.
    #[must_use]
    pub fn new(name: &str, description: &Description) -> Self {
        Self {
            name: name.to_owned(),
            description: description.clone(),
            folder: None,
            mode: 0o666,
            group: None,
            look: Duration::from_millis(1),
            ports: Vec::new(),
        }
    }

    /// Creates a port: its real-time end.
    ///
    /// # Errors
    /// The name is taken, empty or longer than 64 bytes, or there can be no port of this kind.
    pub fn port(&mut self, name: &str, kind: Kind) -> Result<Port, CreateError> {
        let complaint = if !(1..=LONGEST_NAME).contains(&name.len()) {
            Some("a name of 1 to 64 bytes")
        } else if self.ports.iter().any(|port| port.name() == name) {
            Some("a name that no other port has")
        } else {
            kind.complaint()
        };
        if let Some(expected) = complaint {
            return Err(CreateError { name: name.to_owned(), kind, expected });
        }
        let (port, far) = channel::pair(name, kind);
        self.ports.push(far);
        Ok(port)
    }

    /// Puts the socket into this folder, which is made if it is not there; without it, where `crate::place` says. Who
    /// attaches then needs the path.
    pub fn folder(&mut self, folder: impl Into<PathBuf>) -> &mut Self {
        self.folder = Some(folder.into());
        self
    }

    /// Permissions of the socket: who may write to it may read description, state and diagnostics. 0o666 unless told,
    /// below a folder that is private but for root's.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    /// Lets members of this group, by number, command and open ports, beside the user of this process and root. The folder
    /// of the socket lets them in, where it is not root's, in which everybody may look, or one that is there already
    /// ([`Builder::folder`]): this user has to be a member, or root.
    pub fn group(&mut self, group: u32) -> &mut Self {
        self.group = Some(group);
        self
    }

    /// How often the door looks whether the real-time side sent something, while a port is open: 1 ms unless told. What
    /// comes the other way is passed on at once.
    pub fn look(&mut self, every: Duration) -> &mut Self {
        self.look = every.max(Duration::from_micros(50));
        self
    }

    /// Opens the seam. The threads of a process inherit what the thread that starts them asked of the system: call it from
    /// an ordinary thread.
    ///
    /// # Errors
    /// A cycle of this name runs, or the system refuses memory, socket or folder.
    pub fn open(self) -> Result<(RealTimeEnds, Door), OpenError> {
        let Self { name, mut description, folder, mode, group, look, ports } = self;
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.starts_with('.')
            || name.contains(['/', '\0'])
        {
            return Err(OpenError::Name { name });
        }
        description.ports.extend(ports.iter().map(Far::description));
        let axes = description.axes.len();
        let (state, state_file) = state::Writer::make(axes)?;
        let (diagnostics, diagnostics_file) = diagnostics::Writer::make()?;
        let (commands, command) = Regions::new(axes);
        let document = serde_json::to_string(&description).map_err(io::Error::from)?;
        let files = [read_only(&document)?, state_file, diagnostics_file];
        let folder = folder.unwrap_or_else(|| place::own(group));
        let (path, listener) = place::listen_at(&folder, &name, mode, group)?;
        let serve = Serve::new(listener, Handed { name, files, commands, ports, group, look })?;
        let door = Door::open(path, serve, diagnostics)?;
        Ok((RealTimeEnds { state, command }, door))
    }
}

/// A file that holds this text, and that nobody can change.
fn read_only(text: &str) -> io::Result<OwnedFd> {
    let mut file =
        File::from(memfd_create("onbeat-description", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(text.as_bytes())?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Why a port was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("port `{name}` ({kind:?}): expected {expected}")]
pub struct CreateError {
    /// Its name.
    pub name: String,
    /// What it was to carry.
    pub kind: Kind,
    /// What was expected.
    pub expected: &'static str,
}

/// Why the seam was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The name cannot be that of a file.
    #[error("a seam cannot be called `{name}`: 1 to 64 bytes, no `/`, no `.` at the start")]
    Name {
        /// That name.
        name: String,
    },
    /// There is no place for the socket.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The system refused.
    #[error("the seam cannot be opened: {0}")]
    System(#[from] io::Error),
}
