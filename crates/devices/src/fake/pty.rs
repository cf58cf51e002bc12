//! Pty: bytes written here are read from a real terminal device by the process that opens it, and
//! vice versa.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::time::Timespec;

/// Device's side of a pty. Dropping it unplugs the device: reads of the other side fail.
#[derive(Debug)]
pub struct Pty {
    device: OwnedFd,
    path: PathBuf,
    /// Keeps the other side open, so that the device does not notice when its last user closes it.
    _held: File,
}

impl Pty {
    /// Creates a pty in raw mode.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn new() -> io::Result<Self> {
        let device = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&device)?;
        unlockpt(&device)?;
        let path = PathBuf::from(OsString::from_vec(ptsname(&device, Vec::new())?.into_bytes()));
        let held = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(OFlags::NOCTTY.bits() as i32)
            .open(&path)?;
        let mut settings = tcgetattr(&held)?;
        settings.make_raw();
        tcsetattr(&held, OptionalActions::Now, &settings)?;
        let flags = fcntl_getfl(&device)?;
        fcntl_setfl(&device, flags | OFlags::NONBLOCK)?;
        Ok(Self { device, path, _held: held })
    }

    /// Path of the terminal device for the other side.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits up to `longest` for bytes; returns their number.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn read_within(&self, bytes: &mut [u8], longest: Duration) -> io::Result<usize> {
        let longest = Timespec::try_from(longest).map_err(|_| ErrorKind::InvalidInput)?;
        if poll(&mut [PollFd::new(&self.device, PollFlags::IN)], Some(&longest)).unwrap_or(0) == 0 {
            return Ok(0);
        }
        match rustix::io::read(&self.device, bytes) {
            Ok(length) => Ok(length),
            Err(error) => match io::Error::from(error) {
                error if error.kind() == ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Writes as many bytes as fit; a device does not wait for its reader.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(&self.device, bytes) {
            Ok(length) => Ok(length),
            Err(error) => match io::Error::from(error) {
                error if error.kind() == ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }
}
