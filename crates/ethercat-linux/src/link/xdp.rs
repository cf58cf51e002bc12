//! A network interface by AF_XDP: frames from the driver's queue, without the kernel's network
//! stack.

mod attach;

use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;
use std::{fmt, io};

use super::interface::Interface;
use super::lock::Owner;
use super::{Link, OpenError, copy};
use crate::sys::bpf::Redirect;
use crate::sys::ppoll;
use crate::sys::xdp_socket::XdpSocket;
use rt::clock::{Clock, MonotonicClock};

pub(super) use attach::{Attached, Demand};

/// EtherCAT frames of one network interface (AF_XDP): one system call to send a frame, and none to
/// take a frame that is already there.
///
/// A program on the interface hands frames of EtherCAT's EtherType to this link, and all others to
/// the kernel as before. It is removed with the link, however its process ends. The frames are in
/// memory that is shared with the kernel, locked when the link opens. If the driver can, it runs
/// the program (native) and accesses that memory directly (zero-copy); else the kernel runs the
/// program or copies.
///
/// A `receive` that has to wait costs one system call, `ppoll`. A polling link asks the driver for
/// frames instead, without pause, in the caller's time: one call for each attempt, and none of them
/// sleeps.
#[derive(Debug)]
pub struct XdpLink {
    // First: frames go to the kernel before their sockets do.
    _redirect: Redirect,
    /// One to a queue of the interface; the first sends, too.
    sockets: Vec<XdpSocket>,
    mode: XdpMode,
    /// The sockets, and behind them the interface's packet socket, for its errors.
    awaited: Vec<libc::pollfd>,
    interface: Interface,
}

/// Way of an [`XdpLink`]'s frames; displays in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct XdpMode {
    /// The driver runs the program, not the kernel behind it.
    pub native: bool,
    /// The driver reads and writes frames where this process does.
    pub zero_copy: bool,
    /// Polls the driver for frames, without waiting.
    pub polled: bool,
    /// Queues of the interface.
    pub queues: usize,
}

impl XdpLink {
    /// Opens an interface, and waits for its carrier up to `timeout`: a network card may lose it
    /// for a while when its driver takes a program. `polled` asks the driver for frames where
    /// [`Link::receive`] would wait. Needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW.
    ///
    /// # Errors
    /// Every [`OpenError`]: one sentence that names the interface and a remedy.
    pub fn open(interface: &str, timeout: Duration, polled: bool) -> Result<Self, OpenError> {
        Self::on(Interface::open(interface)?, Some(timeout), Demand { native: false, polled })
    }

    /// As [`XdpLink::open`], for one MainDevice at a time, as which `doing` goes there: see
    /// [`PacketLink::open_as_owner`](super::PacketLink::open_as_owner).
    ///
    /// # Errors
    /// [`OpenError::Held`], at once, and the errors of [`XdpLink::open`].
    pub fn open_as_owner(
        interface: &str,
        timeout: Duration,
        polled: bool,
        doing: &str,
    ) -> Result<Self, OpenError> {
        Self::on(Interface::own(interface, doing)?, Some(timeout), Demand { native: false, polled })
    }

    fn on(interface: Interface, timeout: Option<Duration>, demand: Demand) -> Result<Self, OpenError> {
        let attached = Attached::to(&interface, timeout, demand)?;
        Ok(Self::of(attached, interface))
    }

    /// The link that has its program and sockets on this interface.
    pub(super) fn of(attached: Attached, interface: Interface) -> Self {
        let Attached { redirect, sockets, mode } = attached;
        let await_frames = sockets.iter().map(|socket| entry(socket, libc::POLLIN));
        let awaited = await_frames.chain([entry(&interface.socket, 0)]).collect();
        Self { _redirect: redirect, sockets, mode, awaited, interface }
    }

    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Way of its frames.
    #[must_use]
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Number of received frames that found no space: a system call for each queue.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn dropped(&self) -> io::Result<u64> {
        self.sockets.iter().map(XdpSocket::dropped).sum()
    }

    /// As [`PacketLink::squatter`](super::PacketLink::squatter).
    #[must_use]
    pub fn squatter(&self) -> Option<&Owner> {
        self.interface.squatter.as_ref()
    }

    fn take(&mut self, buffer: &mut [u8]) -> Option<usize> {
        self.sockets.iter_mut().find_map(|socket| socket.take(|frame| copy(frame, buffer)))
    }

    /// Asks the driver for a frame until `timeout` has passed, at least once.
    fn poll(&mut self, buffer: &mut [u8], timeout: Duration) -> Option<usize> {
        let clock = MonotonicClock;
        let end = clock.now() + timeout;
        loop {
            self.sockets.iter().for_each(XdpSocket::poll_driver);
            let received = self.take(buffer);
            if received.is_some() || timeout.is_zero() || clock.now() >= end {
                return received;
            }
        }
    }

    /// The interface's error, if it has one: returned once.
    fn error(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let failed = |entry: &libc::pollfd| entry.revents & (libc::POLLERR | libc::POLLHUP) != 0;
        for (socket, _) in self.sockets.iter().zip(&self.awaited).filter(|(_, entry)| failed(entry)) {
            socket.forget_error();
        }
        match self.awaited.last() {
            Some(entry) if failed(entry) => self.interface.socket.receive(buffer),
            _ => Ok(None),
        }
    }
}

impl Link for XdpLink {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.sockets[0].send(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let mut received = self.take(buffer);
        if received.is_none() && self.mode.polled {
            received = self.poll(buffer, timeout);
        }
        if received.is_some() || timeout.is_zero() {
            return Ok(received);
        }
        // After polling without a frame for as long, only the error is read.
        ppoll(&mut self.awaited, if self.mode.polled { Duration::ZERO } else { timeout })?;
        match self.take(buffer) {
            None => self.error(buffer),
            received => Ok(received),
        }
    }

    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        let there = self.sockets.iter_mut().find_map(|socket| socket.take(&mut *take));
        if there.is_some() || !self.mode.polled {
            return Ok(there.is_some());
        }
        let polled = self.poll(buffer, Duration::ZERO);
        polled.inspect(|&length| take(&buffer[..length]));
        Ok(polled.is_some())
    }
}

impl fmt::Display for XdpMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { native, zero_copy, polled, queues } = self;
        let place = if *native { "in the driver" } else { "behind the driver" };
        let copies = if *zero_copy { "without copies" } else { "copied" };
        let polled = if *polled { ", polled" } else { "" };
        let plural = if *queues == 1 { "" } else { "s" };
        write!(f, "AF_XDP, {place}, {copies}{polled}, {queues} queue{plural}")
    }
}

fn entry(socket: &impl AsFd, events: libc::c_short) -> libc::pollfd {
    libc::pollfd { fd: socket.as_fd().as_raw_fd(), events, revents: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_printed_in_words() {
        let mode = XdpMode { native: true, zero_copy: true, polled: true, queues: 4 };
        assert_eq!(mode.to_string(), "AF_XDP, in the driver, without copies, polled, 4 queues");
        let mode = XdpMode { native: false, zero_copy: false, polled: false, queues: 1 };
        assert_eq!(mode.to_string(), "AF_XDP, behind the driver, copied, 1 queue");
    }
}
