//! Changes of checks, as data; they are made through a journal that can undo them.

use std::path::Path;
use std::process::Command;
use std::{fmt, io};

use super::subject::is_napi_of;
use crate::cpus::Cpus;
use crate::ethtool::Value;
use crate::journal::{CpuFormat, Journal};
use crate::task::{Scheduling, Task};

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
    /// Schedules a thread by SCHED_FIFO.
    Priority {
        /// Thread id.
        thread: i32,
        /// Name of the thread, for people.
        name: String,
        /// Priority, 1 to 99.
        priority: u8,
    },
    /// Gives the NAPI instances of an interface threads, and them SCHED_FIFO.
    ThreadedNapi {
        /// Name of the interface.
        interface: String,
        /// Priority, 1 to 99.
        priority: u8,
    },
    /// Changes settings of an interface's driver, all of one block.
    Driver {
        /// Name of the interface.
        interface: String,
        /// Settings with their new values.
        values: Vec<Value>,
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
            Self::Priority { thread, priority, .. } => {
                journal.set_scheduling(*thread, Scheduling::fifo(*priority))
            }
            Self::ThreadedNapi { interface, priority } => thread_napi(journal, interface, *priority),
            Self::Driver { interface, values } => journal.set_driver(interface, values),
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

/// Switches threaded NAPI on. The threads that start now belong to this interface; another network
/// namespace may have threads for an interface with the same name.
fn thread_napi(journal: &mut Journal, interface: &str, priority: u8) -> io::Result<()> {
    let threads = || -> Vec<i32> {
        let all = Task::all().into_iter();
        all.filter(|it| it.of_kernel && is_napi_of(&it.name, interface)).map(|it| it.tid).collect()
    };
    let before = threads();
    journal.write(Path::new(&format!("/sys/class/net/{interface}/threaded")), "1")?;
    let now = threads();
    let mut ours: Vec<i32> = now.iter().copied().filter(|tid| !before.contains(tid)).collect();
    if ours.is_empty() {
        // They were started before, and have slept since.
        ours = now;
    }
    if ours.is_empty() {
        return Err(io::Error::other("it is on, and no thread of it is to be seen: it keeps its priority"));
    }
    ours.into_iter().try_for_each(|tid| journal.set_scheduling(tid, Scheduling::fifo(priority)))
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { path, value } => write!(f, "{path} = {value}"),
            Self::Cpus { path, cpus, .. } => write!(f, "{path} = CPUs {cpus}"),
            Self::Affinity { thread, name, cpus } => write!(f, "{name} ({thread}) only on CPUs {cpus}"),
            Self::Priority { thread, name, priority } => {
                write!(f, "{name} ({thread}) at SCHED_FIFO {priority}")
            }
            Self::ThreadedNapi { interface, priority } => {
                write!(f, "threaded NAPI of {interface} at SCHED_FIFO {priority}")
            }
            Self::Driver { interface, values } => {
                let values: Vec<String> =
                    values.iter().map(|(setting, value)| format!("{setting} {value}")).collect();
                write!(f, "{interface}: {}", values.join(", "))
            }
            Self::Run { command, .. } => f.write_str(&command.join(" ")),
        }
    }
}
