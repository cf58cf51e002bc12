//! Access to tracefs, and a trace instance of our own in it.
//!
//! An instance has its own ring buffers, events and clock, so that other tracing is not affected.
//! Where tracefs is not mounted it is opened detached (`fsopen`, `fsmount`): no mount point
//! appears, and nothing is left to unmount.

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

/// Reason why the kernel's trace cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unavailable {
    /// tracefs does not exist, or may not be opened.
    #[error(
        "tracefs cannot be opened ({0}): it needs root or CAP_SYS_ADMIN, and a kernel with CONFIG_TRACING"
    )]
    Tracefs(io::Error),
    /// No instance can be created.
    #[error("no trace instance can be made ({0}): expected a writable instances folder in tracefs")]
    Instance(io::Error),
    /// A file of the instance is not as expected.
    #[error("{what} of the trace instance: {error}")]
    Setting {
        /// Name of the file.
        what: String,
        /// Error of the operating system.
        error: io::Error,
    },
    /// A required event does not exist.
    #[error("the kernel has no event {0}: it needs CONFIG_FTRACE with that event")]
    Event(String),
    /// A layout cannot be read.
    #[error("the trace's format is not understood: {0}")]
    Format(String),
}

/// tracefs, accessible by path.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    /// Detached mount: gone with its last descriptor, even if the process is killed.
    _mount: Option<OwnedFd>,
}

/// Usual mount points.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Tracefs {
    /// Opens tracefs, mounted or not.
    ///
    /// # Errors
    /// It is not mounted and cannot be opened detached.
    pub fn open() -> Result<Self, Unavailable> {
        if let Some(root) = MOUNTED.iter().find(|root| Path::new(root).join("instances").is_dir()) {
            return Ok(Self { root: root.into(), _mount: None });
        }
        let mount = detached().map_err(Unavailable::Tracefs)?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        Ok(Self { root, _mount: Some(mount) })
    }

    /// Reads a file, given by its path in tracefs.
    ///
    /// # Errors
    /// Reading fails.
    pub fn read(&self, path: &str) -> io::Result<String> {
        // Some files (events/header_page) must be read in a single call, which `fs::read_to_string`
        // does not guarantee.
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

    /// Names of all instances.
    #[must_use]
    pub fn instances(&self) -> Vec<String> {
        let entries = fs::read_dir(self.root.join("instances")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Removes our instances of dead processes; returns their number.
    pub fn remove_stale(&self) -> usize {
        let stale = self.instances().into_iter().filter(|name| is_stale(name));
        // An instance with open pipes is busy and stays, whatever /proc says of its process.
        stale.filter(|name| fs::remove_dir(self.root.join("instances").join(name)).is_ok()).count()
    }
}

/// Trace instance of our own, removed on drop.
#[derive(Debug)]
pub struct Instance {
    tracefs: Tracefs,
    name: String,
}

impl Instance {
    /// Creates an instance, after removing the instances of dead processes.
    ///
    /// # Errors
    /// There is no tracefs, or no instance can be created.
    pub fn create() -> Result<Self, Unavailable> {
        /// Number of instances of this process so far.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let tracefs = Tracefs::open()?;
        tracefs.remove_stale();
        let process = process::id();
        let start = start_time(process).unwrap_or_default();
        // Relaxed: only the number itself counts.
        let name = format!("{PREFIX}{process}-{start}-{}", MADE.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(tracefs.root.join("instances").join(&name)).map_err(Unavailable::Instance)?;
        Ok(Self { tracefs, name })
    }

    /// tracefs of the instance.
    #[must_use]
    pub fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    /// Name of the instance.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of a file of the instance.
    #[must_use]
    pub fn path(&self, file: &str) -> PathBuf {
        self.tracefs.root.join("instances").join(&self.name).join(file)
    }

    /// True if the instance has this file.
    #[must_use]
    pub fn has(&self, file: &str) -> bool {
        self.path(file).exists()
    }

    /// Writes a file of the instance.
    ///
    /// # Errors
    /// Writing fails; with the name of the file.
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
        // A reader that is just closing keeps it busy for a moment.
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

/// Prefix of the names of our instances, followed by process id, start time and a number.
const PREFIX: &str = "onbeat-";

fn detached() -> io::Result<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

/// True if an instance is ours and the process that made it has ended: no process has its id, or
/// one with another start time has.
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

/// Start time of a process, in clock ticks since boot (`man 5 proc_pid_stat`, field 22).
fn start_time(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything, also parentheses.
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
