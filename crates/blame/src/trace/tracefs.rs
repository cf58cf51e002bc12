//! tracefs, and an instance of our own in it.
//!
//! An instance has its own ring buffers, events and clock, so that nobody else's tracing is touched. Where tracefs is
//! not mounted it is opened detached (`fsopen`, `fsmount`): no mount point ever shows, and nothing is left to unmount.

use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use thiserror::Error;

/// Why the kernel's trace cannot be had.
#[derive(Debug, Error)]
pub enum Unavailable {
    /// There is no tracefs, or it may not be opened.
    #[error(
        "tracefs cannot be opened ({0}): it needs root or CAP_SYS_ADMIN, and a kernel with CONFIG_TRACING"
    )]
    Tracefs(io::Error),
    /// No instance can be made.
    #[error("no trace instance can be made ({0}): expected a writable instances folder in tracefs")]
    Instance(io::Error),
    /// Something in the instance is not as expected.
    #[error("{what} of the trace instance: {error}")]
    Setting {
        /// The file.
        what: String,
        /// What it said.
        error: io::Error,
    },
    /// An event there is no blame without.
    #[error("the kernel has no event {0}: it needs CONFIG_FTRACE with that event")]
    Event(String),
    /// A layout that cannot be read.
    #[error("the trace's format is not understood: {0}")]
    Format(String),
}

/// tracefs, reachable by path.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// The detached mount: gone with its last descriptor, even if the process is killed.
    _mount: Option<OwnedFd>,
}

/// Where it is mounted, if it is.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Tracefs {
    /// Opens it, mounted or not.
    ///
    /// # Errors
    /// Neither mounted nor to be opened detached.
    pub fn open() -> Result<Self, Unavailable> {
        if let Some(root) = MOUNTED.iter().find(|root| Path::new(root).join("instances").is_dir()) {
            return Ok(Self { root: root.into(), _mount: None });
        }
        let mount = detached().map_err(Unavailable::Tracefs)?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { root, _mount: Some(mount) })
    }

    /// Reads one of its files, by its path in it.
    ///
    /// # Errors
    /// What reading fails with.
    pub fn read(&self, path: &str) -> io::Result<String> {
        // Some of them (events/header_page) give all or nothing: one read must hold it all, which
        // `fs::read_to_string` does not promise.
        let mut file = fs::File::open(self.root.join(path))?;
        let mut text = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => return String::from_utf8(text).map_err(io::Error::other),
                length => text.extend_from_slice(&buffer[..length]),
            }
        }
    }

    /// Names of the instances there are.
    #[must_use]
    pub fn instances(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Removes instances of ours whose process is gone without having done so; says how many.
    pub fn remove_stale(&self) -> usize {
        let stale = self.instances().into_iter().filter(|name| is_stale(name));
        // One whose pipes are still open is busy and stays, whatever /proc says of its process.
        stale.filter(|name| fs::remove_dir(self.root.join("instances").join(name)).is_ok()).count()
    }
}

/// An instance of our own: removed when dropped.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    name: String,
}

impl Instance {
    /// Makes one, after removing those of dead processes.
    ///
    /// # Errors
    /// No tracefs, or no instance in it.
    pub fn create() -> Result<Self, Unavailable> {
        /// Instances of this process so far.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let tracefs = Tracefs::open()?;
        tracefs.remove_stale();
        let process = process::id();
        let start = start_time(process).unwrap_or_default();
        // Relaxed: the number itself is all that matters.
        let name = format!("{PREFIX}{process}-{start}-{}", MADE.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(tracefs.root.join("instances").join(&name)).map_err(Unavailable::Instance)?;
        Ok(Self { tracefs, name })
    }

    /// The tracefs it is in.
    #[must_use]
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of one of its files.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.tracefs.root.join("instances").join(&self.name).join(file)
    }

    /// Whether it has this file.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Writes one of its files.
    ///
    /// # Errors
    /// What writing fails with, and where.
    pub fn set(&self, file: &str, value: &str) -> Result<(), Unavailable> {
        fs::write(self.path(file), value)
            .map_err(|error| Unavailable::Setting { what: format!("{file} = {value}"), error })
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        let path = self.path("");
        // A reader that is just leaving keeps it busy for a moment.
        for _ in 0..50 {
            match fs::remove_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    thread::sleep(Duration::from_millis(2));
                }
                _ => return,
            }
        }
    }
}

/// How our instances are called: then the process, when it started, and a number.
const PREFIX: &str = "onbeat-";

fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

/// Whether an instance is ours and the process that made it has ended: no process has its number, or another one
/// that started at another time.
fn is_stale(name: &str) -> bool {
    let Some(rest) = name.strip_prefix(PREFIX) else { return false };
    let mut numbers = rest.split('-').map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(process)), Some(Ok(start))) => {
            u32::try_from(process).map_or(true, |process| start_time(process) != Some(start))
        }
        _ => false,
    }
}

/// When a process started, in clock ticks since the machine's start (`man 5 proc_pid_stat`, field 22).
fn start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold anything, also parentheses.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_stale_when_its_process_is_gone_or_another_one() {
        let process = process::id();
        let start = start_time(process).unwrap();
        assert!(!is_stale(&format!("onbeat-{process}-{start}-0")));
        assert!(is_stale(&format!("onbeat-{process}-{}-0", start + 1)), "the number was used again");
        assert!(is_stale("onbeat-4194999-5-0"), "no such process");
        for foreign in ["perf", "onbeat", "onbeat-", "onbeat-x-y", "trace-cmd-1-2-3"] {
            assert!(!is_stale(foreign), "{foreign}");
        }
    }
}
