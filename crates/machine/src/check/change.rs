//! Changes of checks, as data; they are made through a journal that can undo them.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::cpus::Cpus;
use crate::journal::{CpuFormat, Journal};

/// Reversible change of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Writes `value` to the file at `path`, absolute on the machine.
    Write {
        /// Path from the root.
        path: String,
        /// Text to write, without a line end.
        value: String,
    },
    /// Writes a set of CPUs to a file.
    Cpus {
        /// Path from the root.
        path: String,
        /// Format of the file.
        format: CpuFormat,
        /// Set of CPUs.
        cpus: Cpus,
    },
    /// Restricts a thread to these CPUs.
    Affinity {
        /// Thread id.
        thread: i32,
        /// Name of the thread, for people.
        name: String,
        /// CPUs it may run on.
        cpus: Cpus,
    },
    /// Runs a command; `undo` reverses it. Each is a program and its arguments.
    Run {
        /// Command to run.
        command: Vec<String>,
        /// Command that undoes it.
        undo: Vec<String>,
    },
}

impl Change {
    /// Makes the change on this machine; the journal records the old state first.
    ///
    /// # Errors
    /// The old state cannot be read, or the new one is refused; nothing was changed.
    pub fn make(&self, journal: &mut Journal) -> io::Result<()> {
        match self {
            Self::Write { path, value } => journal.write(Path::new(path), value),
            Self::Cpus { path, format, cpus } => journal.set_cpus(Path::new(path), *format, cpus),
            Self::Affinity { thread, cpus, .. } => journal.set_affinity(*thread, cpus),
            Self::Run { command, undo } => {
                let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
                let undo: Vec<&str> = undo.iter().map(String::as_str).collect();
                journal.run(Command::new(program).args(arguments), &undo).map_err(|error| {
                    match error.kind() {
                        io::ErrorKind::NotFound => {
                            io::Error::new(error.kind(), format!("the program {program} is not installed"))
                        }
                        _ => error,
                    }
                })
            }
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, value } => write!(f, "{path} = {value}"),
            Self::Cpus { path, cpus, .. } => write!(f, "{path} = CPUs {cpus}"),
            Self::Affinity { thread, name, cpus } => write!(f, "{name} ({thread}) only on CPUs {cpus}"),
            Self::Run { command, .. } => f.write_str(&command.join(" ")),
        }
    }
}
