//! Reasons for a failed attach, lease or open.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use crate::region::RegionError;

/// Reason for a failed attach.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no socket, or it is left over from a dead cycle.
    #[error("no cycle answers at {}: start one with `onbeat run`", path.display())]
    Nobody {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The process exists but does not answer.
    #[error("the cycle at {} does not answer: its process is stopped, or gets no CPU", path.display())]
    Silent {
        /// Path of the socket.
        path: PathBuf,
    },
    /// The server speaks another version of the protocol.
    #[error(
        "the cycle at {} speaks another version of the IPC: expected {expected}, found {found}; use programs of the same \
         version of Onbeat on both sides",
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
    /// The server refused.
    #[error("the cycle at {} refused: {why}", path.display())]
    Refused {
        /// Path of the socket.
        path: PathBuf,
        /// Reason, as the server words it.
        why: String,
    },
    /// A region of the cycle has another layout.
    #[error("the cycle at {}: {error}", path.display())]
    Region {
        /// Path of the socket.
        path: PathBuf,
        /// Difference found.
        error: RegionError,
    },
    /// A system call failed.
    #[error("{}: {error}", path.display())]
    System {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// Reason for not finding the one running cycle.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No cycle runs.
    #[error(
        "no cycle{} runs: none answers in {}; start one with `onbeat run`, or set ONBEAT_IPC to the path of its socket",
        name.as_ref().map_or(String::new(), |name| format!(" called `{name}`")),
        folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Nobody {
        /// Name that was searched for.
        name: Option<String>,
        /// Folders that were searched.
        folders: Vec<PathBuf>,
    },
    /// Several cycles run.
    #[error("several cycles run; set ONBEAT_IPC to the path of one:{}", list(found))]
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
    /// Id of the user who runs it.
    pub user: u32,
    /// Path of its socket.
    pub path: PathBuf,
}

fn list(found: &[Running]) -> String {
    found.iter().fold(String::new(), |mut text, Running { name, process, user, path }| {
        let _ = write!(text, "\n  {name} (process {process}, user {user}): {}", path.display());
        text
    })
}

/// Reason for a refused command lease.
#[derive(Debug, thiserror::Error)]
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
    #[error("the command lease was refused: {why}")]
    Refused {
        /// Reason, as the server words it.
        why: String,
    },
    /// The region has another layout.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a signal that was not forced or released.
#[derive(Debug, thiserror::Error)]
pub enum ForceError {
    /// This user may not command, or the robot file lets nobody force.
    #[error("forcing a signal: {why}")]
    NotPermitted {
        /// Users and groups that may, or who decides.
        why: String,
    },
    /// It cannot be.
    #[error("{why}")]
    Refused {
        /// Reason.
        why: String,
    },
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a process that did not become the controller.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
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
    #[error("the cycle takes no controller process: {why}")]
    Refused {
        /// Reason, as the server words it.
        why: String,
    },
    /// A region has another layout.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}

/// Reason for a port that was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// There is no such port.
    #[error("there is no port `{port}`; there are: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
    NoSuchPort {
        /// Name asked for.
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
    #[error("port `{port}` was refused: {why}")]
    Refused {
        /// Name of the port.
        port: String,
        /// Reason, as the server words it.
        why: String,
    },
    /// The request failed.
    #[error(transparent)]
    Attach(AttachError),
}
