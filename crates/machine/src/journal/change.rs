//! Recorded change of the machine, and its undoing.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::group;
use crate::cpus::Cpus;
use crate::ethtool::{self, Value};
use crate::mounts;
use crate::task::{self, Scheduling, Task};

/// Change with everything needed to undo it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A file was written; `None` if it did not exist before.
    File { path: PathBuf, before: Option<String> },
    /// A file with a set of CPUs was written.
    Cpus { path: PathBuf, format: CpuFormat, before: String, after: String },
    /// The affinity of a thread was changed.
    Affinity { tid: i32, started: u64, before: String, after: String },
    /// Threads started from now on inherit the changed affinity of their parents, and are restored
    /// with them. The threads in `known`, by id and start time, exist already.
    Descendants { known: Vec<(i32, u64)> },
    /// The scheduling of a thread was changed.
    Scheduling { tid: i32, started: u64, before: Scheduling },
    /// Settings of an interface's driver, all of one block, were changed.
    Driver { interface: String, before: Vec<Value> },
    /// A folder was made.
    Directory { path: PathBuf },
    /// Threads were moved from one control group's list to another: all that are found there go
    /// back.
    Moved { from: PathBuf, to: PathBuf },
    /// A process or thread was written to the list of a control group.
    Attached { id: i32, started: u64, from: PathBuf },
    /// A CPU was claimed by one process; nothing to undo.
    Claim { cpu: usize },
    /// A command was run; this one undoes it.
    Command { undo: Vec<String> },
}

/// Format of a set of CPUs in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuFormat {
    /// `0-3,8`
    List,
    /// `0000010f`
    Mask,
}

impl CpuFormat {
    /// Reads the set in a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no set of CPUs.
    pub fn read(self, path: &Path) -> io::Result<Cpus> {
        let text = fs::read_to_string(path)?;
        let cpus = match self {
            Self::List => text.parse(),
            Self::Mask => Cpus::from_mask(&text),
        };
        cpus.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    pub(crate) fn write(self, cpus: &Cpus) -> String {
        match self {
            Self::List => cpus.to_string(),
            Self::Mask => cpus.mask(),
        }
    }
}

/// Change that could not be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Description of the change.
    pub what: String,
    /// Reason for the failure.
    pub why: String,
    /// True if it stays in the journal, to be tried again; false if it is dropped, because no later
    /// try could do better.
    pub kept: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, why, kept } = self;
        let could = if *kept { "could not" } else { "can never" };
        write!(f, "{what} {could} be put back: {why}")
    }
}

impl Change {
    /// Creates a [`Change::Descendants`] with all current threads.
    pub(crate) fn descendants() -> Self {
        Self::Descendants { known: Task::all().iter().map(|task| (task.tid, task.started)).collect() }
    }

    pub(crate) fn command(undo: &[&str]) -> Self {
        Self::Command { undo: undo.iter().map(|&word| word.to_owned()).collect() }
    }

    /// Undoes this one of `all` changes. An object that no longer exists needs no undoing.
    pub(crate) fn undo(&self, all: &[Self]) -> Result<(), Failure> {
        match self.try_undo(all) {
            Ok(()) => Ok(()),
            Err(error) if self.is_gone(&error) => Ok(()),
            Err(error) => {
                Err(Failure { what: self.to_string(), why: error.to_string(), kept: may_pass(&error) })
            }
        }
    }

    fn try_undo(&self, all: &[Self]) -> io::Result<()> {
        match self {
            Self::File { path, before: None } => fs::remove_file(path),
            Self::File { path, before: Some(before) } => fs::write(path, before),
            Self::Cpus { path, format, before, after } => {
                let now = format.read(path)?;
                put(&now, &given_back(&now, before, after)?, |cpus| fs::write(path, format.write(cpus)))
            }
            Self::Affinity { tid, started, before, after } => {
                let Some(task) = Task::read(*tid).filter(|task| task.started == *started) else {
                    return Ok(());
                };
                let now = task::affinity(*tid)?;
                let then = given_back(&now, before, after)?;
                put(&now, &then, |cpus| task::set_affinity(*tid, cpus))
                    .map_err(|error| refused_affinity(&task, &then, error))
            }
            Self::Descendants { known } => {
                Families::of(all).restore(known);
                Ok(())
            }
            Self::Scheduling { tid, started, before } => match Task::lives(*tid, *started) {
                true => task::set_scheduling(*tid, *before),
                false => Ok(()),
            },
            Self::Driver { interface, before } => ethtool::set_settings(interface, before),
            Self::Directory { path } => group::remove(path),
            Self::Moved { from, to } => group::return_all(to, from),
            Self::Attached { id, started, from } => match Task::lives(*id, *started) {
                true => fs::write(from, id.to_string()),
                false => Ok(()),
            },
            Self::Claim { .. } => Ok(()),
            Self::Command { undo } => match undo.split_first() {
                Some((program, arguments)) => succeed(Command::new(program).args(arguments)),
                None => Ok(()),
            },
        }
    }

    /// True if the error means that the changed object no longer exists.
    fn is_gone(&self, error: &io::Error) -> bool {
        // The program that would undo it is not what was changed.
        !matches!(self, Self::Command { .. })
            && (error.kind() == io::ErrorKind::NotFound
                || matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENODEV)))
    }
}

/// True if a later try may succeed: another process is in the way, or this one has not the right.
/// False if the kernel does not take the value, with any rights.
fn may_pass(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::EIO | libc::ERANGE | libc::EOPNOTSUPP) => false,
        Some(libc::EPERM) => !rustix::process::geteuid().is_root(),
        _ => !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput),
    }
}

/// Sets `then` in place of `now`; where the kernel does not take CPUs that are offline, the others.
fn put(now: &Cpus, then: &Cpus, set: impl Fn(&Cpus) -> io::Result<()>) -> io::Result<()> {
    if then == now {
        return Ok(());
    }
    set(then).or_else(|error| {
        let offline = then.without(&Cpus::online());
        let rest = then.without(&offline);
        match error.raw_os_error() {
            Some(libc::EINVAL) if !offline.is_empty() && !rest.is_empty() => set(&rest),
            _ => Err(error),
        }
    })
}

/// Reason for which a thread is not let onto the CPUs `then`.
fn refused_affinity(task: &Task, then: &Cpus, error: io::Error) -> io::Error {
    if error.raw_os_error() != Some(libc::EINVAL) {
        return error;
    }
    let name = &task.name;
    let never = |why| io::Error::new(io::ErrorKind::InvalidInput, format!("{name}: {why}"));
    if Task::read(task.tid).is_some_and(|task| task.bound) {
        return never("the kernel has bound it to its CPUs".to_owned());
    }
    if then.without(&Cpus::online()) == *then {
        return never(format!("no CPU of {then} is online"));
    }
    match mounts::of(task.tid, Some("cpuset")).or_else(|| mounts::of(task.tid, None)) {
        // That of another shield is lowered some day.
        Some(group) if group.contains("/onbeat-") => io::Error::new(
            io::ErrorKind::ResourceBusy,
            format!("{name}: its control group {group} has none of CPUs {then}"),
        ),
        Some(group) if group != "/" => never(format!("its control group {group} has none of CPUs {then}")),
        _ => never(error.to_string()),
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, .. } | Self::Cpus { path, .. } => write!(f, "{}", path.display()),
            Self::Affinity { tid, .. } => write!(f, "the CPUs of thread {tid}"),
            Self::Descendants { .. } => write!(f, "the CPUs of threads started since"),
            Self::Scheduling { tid, .. } => write!(f, "the scheduling of thread {tid}"),
            Self::Driver { interface, before } => {
                let settings: Vec<&str> = before.iter().map(|(setting, _)| setting.name()).collect();
                write!(f, "{} of interface {interface}", settings.join(", "))
            }
            Self::Directory { path } => write!(f, "the folder {}", path.display()),
            Self::Moved { to, .. } => write!(f, "the threads in {}", to.display()),
            Self::Attached { id, .. } => write!(f, "the control group of thread {id}"),
            Self::Claim { cpu } => write!(f, "CPU {cpu}"),
            Self::Command { undo } => write!(f, "`{}`", undo.join(" ")),
        }
    }
}

/// `now`, plus the CPUs removed between `before` and `after`, minus the CPUs added.
fn given_back(now: &Cpus, before: &str, after: &str) -> io::Result<Cpus> {
    let parse = |text: &str| {
        text.parse::<Cpus>().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    };
    let (before, after) = (parse(before)?, parse(after)?);
    if *now == after {
        return Ok(before);
    }
    let then = now.without(&after.without(&before)).with(&before.without(&after));
    Ok(if then.is_empty() { before } else { then })
}

/// Changed affinities by thread, which threads started meanwhile have inherited.
struct Families {
    changed: BTreeMap<i32, Inherited>,
}

/// Affinity of a thread that was changed.
struct Inherited {
    /// Start of the thread: its id may have been given to another since.
    started: u64,
    before: Cpus,
    after: Cpus,
}

impl Families {
    fn of(changes: &[Change]) -> Self {
        let mut changed = BTreeMap::new();
        for change in changes {
            if let Change::Affinity { tid, started, before, after } = change {
                if let (Ok(before), Ok(after)) = (before.parse(), after.parse()) {
                    changed.insert(*tid, Inherited { started: *started, before, after });
                }
            }
        }
        Self { changed }
    }

    /// Restores threads that were not changed themselves but still have the affinity given to their
    /// process or nearest ancestor.
    fn restore(&self, known: &[(i32, u64)]) {
        for task in Task::all() {
            let known = known.contains(&(task.tid, task.started));
            if known || self.changed(&task).is_some() || task.bound {
                continue;
            }
            let Some(Inherited { before, after, .. }) = self.inherited(&task) else { continue };
            // A thread may end in between.
            if task::affinity(task.tid).is_ok_and(|now| now == *after) {
                let _ = task::set_affinity(task.tid, before);
            }
        }
    }

    fn inherited(&self, task: &Task) -> Option<&Inherited> {
        let mut process = Task::read(task.pid)?;
        for _ in 0..LONGEST_LINE {
            if let Some(found) = self.changed(&process) {
                return Some(found);
            }
            process = Task::read(process.parent)?;
        }
        None
    }

    fn changed(&self, task: &Task) -> Option<&Inherited> {
        self.changed.get(&task.tid).filter(|changed| changed.started == task.started)
    }
}

/// Most generations searched.
const LONGEST_LINE: usize = 64;

/// Selected word of `always [madvise] never` or `none (full) lazy`; any other text without its line
/// end.
pub(crate) fn chosen(text: &str) -> &str {
    let between = |open, close| text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
    match between('[', ']').or_else(|| between('(', ')')) {
        Some((word, _)) if text.lines().count() == 1 && !word.is_empty() => word,
        _ => text.strip_suffix('\n').unwrap_or(text),
    }
}

/// Runs a command to its end and keeps its output for the error.
pub(crate) fn succeed(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or_default();
    Err(io::Error::other(format!("{:?}: {}: {said}", command.get_program(), output.status)))
}

/// Journal that was undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Purpose of its changes.
    pub what: String,
    /// Id of the process that made them.
    pub pid: u32,
    /// True if they were to outlive it.
    pub persistent: bool,
    /// Number of changes.
    pub changes: usize,
    /// Changes that could not be undone.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, pid, persistent, changes, failures } = self;
        let ended = if *persistent { "made by" } else { "left behind by" };
        write!(f, "{what}, {ended} process {pid}: {} of {changes} changes undone", changes - failures.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_what_is_written_back() {
        for (text, word) in [
            ("always [madvise] never\n", "madvise"),
            ("(none) voluntary full lazy\n", "none"),
            ("4\t4\t1\t7\n", "4\t4\t1\t7"),
            ("two lines\n[of text]\n", "two lines\n[of text]"),
            ("()\n", "()"),
            ("", ""),
        ] {
            assert_eq!(chosen(text), word);
        }
    }
}
