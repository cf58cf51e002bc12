//! Side of the process that runs the cycle.
//!
//! ```no_run
//! use onbeat_ipc::channel::Kind;
//! use onbeat_ipc::description::Description;
//! use onbeat_ipc::state::State;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut ipc = onbeat_ipc::server::Builder::new("m4k", &Description::default());
//! let mut imu = ipc.port("imu", Kind::Message { size: 64, depth: 16 })?;
//! let (mut ends, server) = ipc.open()?;
//! // On the real-time thread, once and then in every cycle:
//! imu.bind();
//! let mut command = ends.command.blank();
//! ends.command.newest(&mut command);
//! ends.state.publish(&State::default());
//! # drop(server); Ok(())
//! # }
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use crate::channel::far::Far;
use crate::channel::{self, Bell, Kind, Port, Wake};
use crate::command::Regions;
use crate::description::Description;
use crate::service::protocol::LONGEST_NAME;
use crate::service::{Handed, Serve};
use crate::{bus, command, controller, diagnostics, force, place, reference, state};

pub use crate::place::{PlaceError, may_be_made};
pub use crate::service::Server;

/// Builder of a shared-memory interface.
#[derive(Debug)]
pub struct Builder {
    name: String,
    description: Description,
    folder: Option<PathBuf>,
    mode: u32,
    group: Option<u32>,
    look: Duration,
    ports: Vec<Far>,
    bell: Arc<Bell>,
    forced: Option<Vec<types::Signal>>,
    bus: Option<bus::Admission>,
    controller: Option<controller::Role>,
}

/// Ends kept by the real-time thread.
#[derive(Debug)]
pub struct Endpoints {
    /// Publishes the state of the cycle.
    pub state: state::Writer,
    /// Reads commands.
    pub command: command::Reader,
    /// Reads which signals are to be forced.
    pub forces: force::Reader,
    /// Reads positions that a person gives an axis.
    pub references: reference::Reader,
}

impl Builder {
    /// Begins an interface of this name, for a robot with the axes of the description. Its ports
    /// are added to the ports of the description.
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
            bell: Arc::default(),
            forced: None,
            bus: None,
            controller: None,
        }
    }

    /// Lets clients ask the bus; returns the entrance for [`bus::Server::start`].
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn bus(&mut self) -> io::Result<bus::Guests> {
        let (admission, guests) = bus::Admission::new()?;
        self.bus = Some(admission);
        Ok(guests)
    }

    /// Creates the role of a controller process; returns the cycle's end. One cycle has one at
    /// most: a second one replaces the first.
    pub fn controller(&mut self) -> controller::CycleEnd {
        let Description { axes, signals, .. } = &self.description;
        let (role, end) = controller::Role::new(axes.len(), signals.len());
        self.controller = Some(role);
        end
    }

    /// Creates a port; returns its real-time end.
    ///
    /// # Errors
    /// The name is taken, empty or longer than 64 bytes, or no port of this kind is possible.
    pub fn port(&mut self, name: &str, kind: Kind) -> Result<Port, CreateError> {
        self.port_waking(name, kind, Wake::Look)
    }

    /// The same with another way in which the server learns of data from the real-time end.
    ///
    /// # Errors
    /// As for [`Builder::port`].
    pub fn port_waking(&mut self, name: &str, kind: Kind, wake: Wake) -> Result<Port, CreateError> {
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
        let (port, far) = channel::pair(name, kind, wake, &self.bell);
        self.ports.push(far);
        Ok(port)
    }

    /// Puts the socket into this folder, which is made if it does not exist; clients then need the
    /// path. The default is described in `crate::place`.
    pub fn folder(&mut self, folder: impl Into<PathBuf>) -> &mut Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the permissions of the socket: users with write permission may read description, state
    /// and diagnostics. Default 0o666, in a folder that is private except for root's.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    /// Lets members of this group, by number, command and open ports, in addition to the user of
    /// this process and root. The group is admitted to the folder of the socket, except to root's,
    /// which every user may read, and to one that exists already ([`Builder::folder`]). This user
    /// has to be root or a member of the group.
    pub fn group(&mut self, group: u32) -> &mut Self {
        self.group = Some(group);
        self
    }

    /// Lets signals be forced: all of the description, in its order. Without this none can be.
    pub fn forces(&mut self, signals: &[types::Signal]) -> &mut Self {
        self.forced = Some(signals.to_vec());
        self
    }

    /// Sets the interval at which the server checks for data of the real-time side while a port of
    /// [`Wake::Look`] is open, by default 1 ms. Data in the other direction is passed on at once.
    pub fn look(&mut self, every: Duration) -> &mut Self {
        self.look = every.max(Duration::from_micros(50));
        self
    }

    /// Opens the interface. Call it from an ordinary thread: threads inherit scheduling and
    /// affinity of the thread that starts them.
    ///
    /// # Errors
    /// A cycle of this name runs, or the system refuses memory, socket or folder.
    pub fn open(self) -> Result<(Endpoints, Server), OpenError> {
        let Self { name, mut description, folder, mode, group, look, ports, bell, forced, bus, controller } =
            self;
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || name.starts_with('.')
            || name.contains(['/', '\0'])
        {
            return Err(OpenError::Name { name });
        }
        description.ports.extend(ports.iter().map(Far::description));
        let (state, state_file) = state::Writer::make(description.rows())?;
        let (diagnostics, diagnostics_file) = diagnostics::Writer::make()?;
        let (commands, command) = Regions::new(description.commanded_rows());
        let (forces, forced) = force::pair(forced);
        let (references, positions) = reference::pair();
        let document = serde_json::to_string(&description).map_err(io::Error::from)?;
        let files = [read_only(&document)?, state_file, diagnostics_file];
        let listening = place::open(folder.as_deref(), &name, place::CYCLE, mode, group)?;
        let handed =
            Handed { name, files, commands, forces, references, controller, ports, bell, bus, group, look };
        let serve = Serve::new(listening.socket, handed)?;
        let server = Server::open(listening.path, listening.passed_over, serve, diagnostics)?;
        Ok((Endpoints { state, command, forces: forced, references: positions }, server))
    }
}

/// Creates a sealed memory file of this text.
fn read_only(text: &str) -> io::Result<OwnedFd> {
    let mut file =
        File::from(memfd_create("onbeat-description", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.write_all(text.as_bytes())?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    Ok(file.into())
}

/// Reason for a port that was not created.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("port `{name}` ({kind:?}): expected {expected}")]
pub struct CreateError {
    /// Name of the port.
    pub name: String,
    /// Requested kind.
    pub kind: Kind,
    /// Names or kinds allowed.
    pub expected: &'static str,
}

/// Reason for an interface that was not opened.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The name cannot be a file name.
    #[error("an IPC cannot be called `{name}`: 1 to 64 bytes, no `/`, no `.` at the start")]
    Name {
        /// Name given.
        name: String,
    },
    /// The socket cannot be placed.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A system call failed.
    #[error("the IPC cannot be opened: {0}")]
    System(#[from] io::Error),
}

types::debug_is_sentence!(CreateError, OpenError);
