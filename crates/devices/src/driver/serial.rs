//! Serial port, or a device that behaves like one: USB class CDC-ACM, the terminal side of a pty.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{OptionalActions, QueueSelector, ioctl_tiocexcl, tcflush, tcgetattr, tcsetattr};
use rustix::time::Timespec;

/// Open port in raw mode: 8 data bits, no parity, one stop bit.
#[derive(Debug)]
pub struct Serial {
    file: File,
}

impl Serial {
    /// Opens a port exclusively, at `baud` bit/s, which USB devices ignore. Bytes that arrived
    /// before are discarded.
    ///
    /// # Errors
    /// The operating system's error, also for a file that is no serial port.
    pub fn open(path: &Path, baud: u32) -> io::Result<Self> {
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path)?;
        let mut settings = tcgetattr(&file).map_err(|error| {
            io::Error::new(ErrorKind::InvalidInput, format!("it is no serial port ({error})"))
        })?;
        settings.make_raw();
        settings.set_speed(baud)?;
        tcsetattr(&file, OptionalActions::Now, &settings)?;
        // A second process would take part of the bytes; this does not keep out root.
        ioctl_tiocexcl(&file)?;
        tcflush(&file, QueueSelector::IOFlush)?;
        Ok(Self { file })
    }

    /// Waits up to `longest` for bytes; returns their number, 0 for none.
    ///
    /// # Errors
    /// The operating system's error, and [`ErrorKind::NotConnected`] if the device is gone.
    pub fn read_within(&mut self, bytes: &mut [u8], longest: Duration) -> io::Result<usize> {
        let gone = || io::Error::new(ErrorKind::NotConnected, "the device is gone");
        if !self.ready(PollFlags::IN, longest)? {
            return Ok(0);
        }
        match self.file.read(bytes) {
            Ok(0) => Err(gone()),
            Ok(length) => Ok(length),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
            // Error of a USB device that was unplugged, and of a pty with its other end closed.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Err(gone()),
            Err(error) => Err(error),
        }
    }

    /// Writes all bytes within `longest`.
    ///
    /// # Errors
    /// The operating system's error, and [`ErrorKind::TimedOut`].
    pub fn write_within(&mut self, mut bytes: &[u8], longest: Duration) -> io::Result<()> {
        let begin = Instant::now();
        while !bytes.is_empty() {
            if !self.ready(PollFlags::OUT, longest.saturating_sub(begin.elapsed()))? {
                return Err(io::Error::new(ErrorKind::TimedOut, "the device takes no bytes"));
            }
            match self.file.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn ready(&self, wanted: PollFlags, longest: Duration) -> io::Result<bool> {
        let longest = Timespec::try_from(longest).map_err(|_| ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.file, wanted)], Some(&longest)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
