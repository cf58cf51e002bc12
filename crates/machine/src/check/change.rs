//! What a check may change, as data, and made through a journal that can undo it.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::cpus::Cpus;
use crate::journal::{CpuFormat, Journal};

/// One reversible change of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Write `value` to the file at `path`, absolute on the machine.
    Write {
        /// Path from the root.
        path: String,
        /// What to write, without a line end.
        value: String,
    },
    /// Write a set of CPUs to a file that holds one.
    Cpus {
        /// Path from the root.
        path: String,
        /// How the file writes sets.
        format: CpuFormat,
        /// The CPUs.
        cpus: Cpus,
    },
    /// Let a thread run on these CPUs only.
    Affinity {
        /// The thread's number.
        thread: i32,
        /// Its name, for people.
        name: String,
        /// Where it may run.
        cpus: Cpus,
    },
    /// Run a command; `undo` takes back what it did. Each is a program and its arguments.
    Run {
        /// What to run.
        command: Vec<String>,
        /// What undoes it.
        undo: Vec<String>,
    },
}

impl Change {
    /// Makes it on this machine; the journal remembers how it was before.
    ///
    /// # Errors
    /// The old state cannot be read, or the new one is refused; then nothing was changed.
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
