//! Simulated devices, each after its data sheet, for tests, measurements and simulated robots.
//!
//! | simulated device | connected through | part of the driver under test |
//! |---|---|---|
//! | [`range_finder`] | a real pty | all: port, bytes, protocol, timing |
//! | [`imu`], [`myahrs`] | the driver's registers | all but the I2C transfers |
//! | [`sonar`] | the driver's line | all but the GPIO lines |
//! | [`wheels`] | the driver itself | none: it is the drive |
//!
//! Their encoders are their own: they share no codec with the drivers under test.

pub mod dc_motors;
pub mod imu;
pub mod myahrs;
pub mod range_finder;
pub mod scene;
pub mod sonar;
pub mod wheels;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use rustix::time::Timespec;

use super::driver::spi::{Mode, Wire};
use super::pair::DeviceError;

/// Strip that keeps the last bytes it was sent.
#[derive(Clone, Debug, Default)]
pub struct Strip {
    speed: u32,
    last: Arc<Mutex<Vec<u8>>>,
}

impl Strip {
    /// Bytes it was sent last.
    #[must_use]
    pub fn last(&self) -> Vec<u8> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Wire for Strip {
    fn place(&self) -> String {
        "simulated".into()
    }

    fn open(&mut self, speed: u32, _mode: Mode) -> Result<(), DeviceError> {
        self.speed = speed;
        Ok(())
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        // Takes as long as the bits take on the wire.
        let bits = bytes.len() as u64 * 8;
        thread::sleep(Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.speed.max(1))));
        bytes.clone_into(&mut self.last.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }

    /// A strip gives no answer.
    fn receive(&mut self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        bytes.fill(0);
        Ok(())
    }

    fn close(&mut self) {}
}

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
