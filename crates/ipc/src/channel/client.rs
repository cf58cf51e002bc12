//! The client's end of a port, for an ordinary thread of any process.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::Timespec;

use super::Kind;

/// An open port. Dropping it frees the port for the next client.
///
/// It is a socket: [`AsFd`] gives it to `poll`, `select` or an event loop. On a port of messages
/// one `read` is one message, and so is one `write`. `read` returns 0 once the cycle has ended. Two
/// threads may read and write at once through `&Channel`.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    kind: Kind,
}

impl Channel {
    pub(crate) fn new(socket: OwnedFd, kind: Kind) -> Self {
        Self { socket, kind }
    }

    /// Kind of data the port carries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes `read` and `write` return [`ErrorKind::WouldBlock`] instead of waiting if `on`; by
    /// default they wait.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn set_nonblocking(&self, on: bool) -> io::Result<()> {
        let flags = fcntl_getfl(&self.socket)?;
        Ok(fcntl_setfl(&self.socket, if on { flags | OFlags::NONBLOCK } else { flags - OFlags::NONBLOCK })?)
    }

    /// Reads as `read` does, but waits no longer than `longest`; `None` if nothing came.
    ///
    /// # Errors
    /// The errors of `read`, and [`ErrorKind::UnexpectedEof`] once the cycle has ended.
    pub fn recv_timeout(&self, buffer: &mut [u8], longest: Duration) -> io::Result<Option<usize>> {
        match self.wait(PollFlags::IN, longest)? {
            false => Ok(None),
            true => match self.receive(buffer, RecvFlags::DONTWAIT) {
                Ok(0) if !buffer.is_empty() => {
                    Err(io::Error::new(ErrorKind::UnexpectedEof, "the cycle has ended"))
                }
                Ok(length) => Ok(Some(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// Writes as `write` does, but waits no longer than `longest` for space.
    ///
    /// # Errors
    /// The errors of `write`, and [`ErrorKind::TimedOut`] if there was no space in time.
    pub fn send_timeout(&self, bytes: &[u8], longest: Duration) -> io::Result<usize> {
        let late =
            || io::Error::new(ErrorKind::TimedOut, "the real-time side does not take what is sent to it");
        if !self.wait(PollFlags::OUT, longest)? {
            return Err(late());
        }
        self.transmit(bytes, SendFlags::DONTWAIT).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => late(),
            _ => error,
        })
    }

    /// True if the descriptor is ready within `longest`.
    fn wait(&self, wanted: PollFlags, longest: Duration) -> io::Result<bool> {
        let deadline = Instant::now().checked_add(longest);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&self.socket, wanted)], left.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let room = buffer.len();
        let received = retry_on_intr(|| recv(&self.socket, &mut *buffer, flags | RecvFlags::TRUNC));
        match (received, self.kind) {
            (Ok((_, length)), Kind::Message { .. }) if length > room => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("a message of {length} bytes was cut to a buffer of {room}, and is lost"),
            )),
            (Ok((_, length)), _) => Ok(length.min(room)),
            // The other end closed before it had read everything.
            (Err(Errno::CONNRESET), _) => Ok(0),
            (Err(error), _) => Err(error.into()),
        }
    }

    fn transmit(&self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        match self.kind {
            Kind::Message { size, .. } if !(1..=size).contains(&bytes.len()) => Err(io::Error::new(
                ErrorKind::InvalidInput,
                format!("the port takes messages of 1 to {size} bytes, not {}", bytes.len()),
            )),
            _ => Ok(retry_on_intr(|| send(&self.socket, bytes, flags | SendFlags::NOSIGNAL))?),
        }
    }
}

impl Read for &Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer, RecvFlags::empty())
    }
}

impl Write for &Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.transmit(bytes, SendFlags::empty())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Channel {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
}

impl Write for Channel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        channel.socket
    }
}
