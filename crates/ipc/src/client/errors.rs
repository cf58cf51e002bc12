//! Reasons for a failed attach, lease or open.

use std::fmt::{self, Write};
use std::io;
use std::path::PathBuf;

use types::debug_is_sentence;

use crate::region::RegionError;
use crate::service::protocol::{Reply, Status};

/// Reason for a failed attach.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// There is no socket, or it is left over from a dead cycle.
    #[error("no cycle answers at {}: start one with `onbeat run`", path.display())]
    NoServer {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The process exists but does not answer.
    #[error("the cycle at {} does not answer: its process is stopped, or gets no CPU", path.display())]
    Silent {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The server has another version of the protocol.
    #[error(
        "the cycle at {} uses another version of the IPC: expected {expected}, found {found}; use \
         programs of the same version of Onbeat on both sides",
        path.display()
    )]
    Version {
        /// Path of the socket.
        path: PathBuf,
        /// Version of this program.
        expected: u16,
        /// Version of the cycle.
        found: u16,
    },
    /// The server refused, or sent an invalid reply.
    #[error("the cycle at {} refused: {source}", path.display())]
    Refused {
        /// Path of the socket.
        path: PathBuf,
        /// Reason.
        source: Refusal,
    },
    /// A region of the cycle has another layout.
    #[error("the cycle at {}: {source}", path.display())]
    Region {
        /// Path of the socket.
        path: PathBuf,
        /// Difference found.
        source: RegionError,
    },
    /// A system call failed.
    #[error("{}: {source}", path.display())]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Reason for a refusal. A text comes from the server.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Another process has it.
    #[error("process {process} has it")]
    Taken {
        /// Id of that process.
        process: u32,
    },
    /// The real-time side is not ready, and may be soon.
    #[error("{0}")]
    NotReady(String),
    /// A system call of the server failed.
    #[error("{0}")]
    Failed(String),
    /// It cannot be.
    #[error("{0}")]
    Impossible(String),
    /// Another reason.
    #[error("{0}")]
    Other(String),
    /// A program of others answers.
    #[error("what answers there is no IPC of Onbeat")]
    NoIpc,
    /// Another number of file descriptors came than the three of an attach.
    #[error("3 descriptors were expected, {found} came")]
    Descriptors {
        /// Their number.
        found: usize,
    },
    /// The description could be changed, or never end.
    #[error("its description is no sealed memory file")]
    NotSealed,
    /// The description is none that this version knows.
    #[error("its description cannot be read: {0}")]
    Description(#[source] io::Error),
}

/// Reason for not finding the one running cycle.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum FindError {
    /// No cycle runs.
    #[error(
        "no cycle{} runs: no process answers in {}; start one with `onbeat run`, or set ONBEAT_IPC \
         to the path of its socket",
        name.as_ref().map_or(String::new(), |name| format!(" called `{name}`")),
        folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    NoServer {
        /// Name that was searched for.
        name: Option<String>,
        /// Folders that were searched.
        folders: Vec<PathBuf>,
    },
    /// Several cycles run.
    #[error(
        "several cycles run; name one, as with --cycle NAME, or set ONBEAT_IPC to the path of its socket:{}",
        list(found)
    )]
    Several {
        /// All cycles found.
        found: Vec<Running>,
    },
    /// The cycle exists but cannot be attached to.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// A running cycle found by the search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Name of its interface.
    pub name: String,
    /// Id of the process that runs it.
    pub process: u32,
    /// Id of the user that runs it.
    pub user: u32,
    /// Path of its socket.
    pub path: PathBuf,
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, process, user, path } = self;
        write!(f, "{name} (process {process}, user {user}): {}", path.display())
    }
}

impl From<Reply> for Refusal {
    fn from(reply: Reply) -> Self {
        let text = if reply.text.is_empty() { format!("{:?}", reply.status) } else { reply.text };
        match reply.status {
            Status::Taken => Self::Taken { process: reply.numbers[0] },
            Status::NotReady => Self::NotReady(text),
            Status::Failed => Self::Failed(text),
            Status::Impossible => Self::Impossible(text),
            _ => Self::Other(text),
        }
    }
}

fn list(found: &[Running]) -> String {
    found.iter().fold(String::new(), |mut text, running| {
        let _ = write!(text, "\n  {running}");
        text
    })
}

/// Reason for a refused command lease.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// Another process holds it.
    #[error("process {process} gives the commands: end it first")]
    Taken {
        /// Id of that process.
        process: u32,
    },
    /// This user may not command.
    #[error("the command lease: {why}")]
    NotPermitted {
        /// Users and groups that may.
        why: String,
    },
    /// The server refused.
    #[error("the command lease was refused: {0}")]
    Refused(#[source] Refusal),
    /// The region has another layout.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a signal that was not forced or released.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ForceError {
    /// This user may not command, or the robot file permits no forces.
    #[error("forcing a signal: {why}")]
    NotPermitted {
        /// Users and groups that may, or the authority that decides.
        why: String,
    },
    /// It cannot be.
    #[error(transparent)]
    Refused(Refusal),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a position that was not accepted or set.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PositionError {
    /// The cycle refuses it, or this user may not command.
    #[error("{why}")]
    Refused {
        /// The reason.
        why: String,
    },
    /// It cannot be asked.
    #[error(transparent)]
    Failed(Refusal),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a process that did not become the controller.
#[non_exhaustive]
#[derive(thiserror::Error)]
pub enum ControllerError {
    /// Another process is it.
    #[error("process {process} is the controller: end it first")]
    Taken {
        /// Id of that process.
        process: u32,
    },
    /// This user may not command.
    #[error("the controller: {why}")]
    NotPermitted {
        /// Users and groups that may.
        why: String,
    },
    /// The server refused.
    #[error("the cycle takes no controller process: {0}")]
    Refused(#[source] Refusal),
    /// A region has another layout.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a port that was not opened.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// There is no such port.
    #[error("there is no port `{port}`; there are: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
    NoSuchPort {
        /// Requested name.
        port: String,
        /// Names of the ports there are.
        known: Vec<String>,
    },
    /// Another process has it open.
    #[error("process {process} has port `{port}` open: end it first")]
    Taken {
        /// Name of the port.
        port: String,
        /// Id of that process.
        process: u32,
    },
    /// This user may not open ports.
    #[error("port `{port}`: {why}")]
    NotPermitted {
        /// Name of the port.
        port: String,
        /// Users and groups that may.
        why: String,
    },
    /// The server refused.
    #[error("port `{port}` was refused: {source}")]
    Refused {
        /// Name of the port.
        port: String,
        /// Reason.
        source: Refusal,
    },
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

debug_is_sentence!(
    AttachError,
    Refusal,
    FindError,
    LeaseError,
    ForceError,
    PositionError,
    ControllerError,
    PortError
);
