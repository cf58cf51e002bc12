//! Why one stays outside.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use crate::region::RegionError;

/// Why there is no attachment.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no socket, or a dead cycle's.
    #[error("no cycle answers at {}: start one with `onbeat run`", path.display())]
    Nobody {
        /// Where.
        path: PathBuf,
    },
    /// The process is there but does not answer.
    #[error("the cycle at {} does not answer: its process is stopped, or gets no CPU", path.display())]
    Silent {
        /// Where.
        path: PathBuf,
    },
    /// It speaks another version.
    #[error(
        "the cycle at {} speaks another version of the seam: expected {expected}, found {found}; use programs of the same \
         version of Onbeat on both sides",
        path.display()
    )]
    Version {
        /// Where.
        path: PathBuf,
        /// This program's.
        expected: u16,
        /// The cycle's.
        found: u16,
    },
    /// It said no.
    #[error("the cycle at {} refused: {why}", path.display())]
    Refused {
        /// Where.
        path: PathBuf,
        /// In its words.
        why: String,
    },
    /// What it hands out is of another make.
    #[error("the cycle at {}: {error}", path.display())]
    Region {
        /// Where.
        path: PathBuf,
        /// What differs.
        error: RegionError,
    },
    /// The system refused.
    #[error("{}: {error}", path.display())]
    System {
        /// Where.
        path: PathBuf,
        /// What it says.
        error: io::Error,
    },
}

/// Why the one running cycle was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// There is none.
    #[error(
        "no cycle{} runs: none answers in {}; start one with `onbeat run`, or set ONBEAT_SEAM to the path of its socket",
        name.as_ref().map_or(String::new(), |name| format!(" called `{name}`")),
        folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Nobody {
        /// What it was to be called.
        name: Option<String>,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// There are several.
    #[error("several cycles run; set ONBEAT_SEAM to the path of one:{}", list(found))]
    Several {
        /// All of them.
        found: Vec<Running>,
    },
    /// It is there, but cannot be attached to.
    #[error(transparent)]
    Attach(#[from] AttachError),
}

/// A cycle that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Name of its seam.
    pub name: String,
    /// The process that runs it.
    pub process: u32,
    /// The user who does.
    pub user: u32,
    /// Its socket.
    pub path: PathBuf,
}

fn list(found: &[Running]) -> String {
    found.iter().fold(String::new(), |mut text, Running { name, process, user, path }| {
        let _ = write!(text, "\n  {name} (process {process}, user {user}): {}", path.display());
        text
    })
}

/// Why the command lease was not given.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Somebody has it.
    #[error("process {process} gives the commands: end it first")]
    Taken {
        /// Who.
        process: u32,
    },
    /// This user may not.
    #[error("the command lease: {why}")]
    NotPermitted {
        /// Who may.
        why: String,
    },
    /// The cycle said no.
    #[error("the command lease was refused: {why}")]
    Refused {
        /// In its words.
        why: String,
    },
    /// The region is of another make.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The cycle cannot be asked.
    #[error(transparent)]
    Attach(AttachError),
}

/// Why a port was not opened.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// It does not exist.
    #[error("there is no port `{port}`; there are: {}", if known.is_empty() { "none".into() } else { known.join(", ") })]
    NoSuchPort {
        /// Its name.
        port: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// Somebody has it open.
    #[error("process {process} has port `{port}` open: end it first")]
    Taken {
        /// Its name.
        port: String,
        /// Who.
        process: u32,
    },
    /// This user may not.
    #[error("port `{port}`: {why}")]
    NotPermitted {
        /// Its name.
        port: String,
        /// Who may.
        why: String,
    },
    /// The cycle said no.
    #[error("port `{port}` was refused: {why}")]
    Refused {
        /// Its name.
        port: String,
        /// In its words.
        why: String,
    },
    /// The cycle cannot be asked.
    #[error(transparent)]
    Attach(AttachError),
}
