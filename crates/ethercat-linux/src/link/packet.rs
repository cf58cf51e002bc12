//! A network interface, by way of a raw packet socket.

use std::io;
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::interface::Interface;
use super::lock::Owner;
use super::{Link, OpenError, copy};
use crate::sys::packet_ring::PacketRing;

/// EtherCAT frames of one network interface (AF_PACKET): one system call to send a frame, and none
/// to take a frame that is already there.
///
/// A `receive` that has to wait costs one: `ppoll`; if no frame came another, which returns the
/// interface's error.
#[derive(Debug)]
pub struct PacketLink {
    ring: PacketRing,
    interface: Interface,
}

impl PacketLink {
    /// The system calls it makes, by name; [`XdpLink`](super::XdpLink) makes the same.
    pub const SYSTEM_CALLS: [&str; 3] = ["sendto", "recvfrom", "ppoll"];

    /// Time a network card just brought up may take to see the far end of its cable.
    pub const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

    /// Opens an interface. A network card just brought up takes its time to see the far end: this
    /// waits for it up to `timeout`.
    ///
    /// # Errors
    /// Every [`OpenError`]: one sentence that names the interface and a remedy.
    pub fn open(interface: &str, timeout: Duration) -> Result<Self, OpenError> {
        Self::on(Interface::open(interface)?, Some(timeout))
    }

    /// As [`PacketLink::open`], for one MainDevice at a time: while this link exists, another
    /// process of this network namespace, of any user, that opens the interface in this way is
    /// refused. Its error names the holder with the text `doing` ("onbeat scan"). No lock is left
    /// behind, however this process ends.
    ///
    /// # Errors
    /// [`OpenError::Held`], at once, and the errors of [`PacketLink::open`].
    pub fn open_as_owner(interface: &str, timeout: Duration, doing: &str) -> Result<Self, OpenError> {
        Self::on(Interface::own(interface, doing)?, Some(timeout))
    }

    pub(super) fn on(interface: Interface, timeout: Option<Duration>) -> Result<Self, OpenError> {
        let ring = PacketRing::of(&interface.socket).map_err(|source| interface.refused(source))?;
        interface.await_carrier(timeout)?;
        Ok(Self { ring, interface })
    }

    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Checks that an interface exists, is up, and has a carrier; several system calls, not for a
    /// real-time thread.
    ///
    /// # Errors
    /// As [`PacketLink::open`].
    pub fn check(interface: &str) -> Result<(), OpenError> {
        Interface::check(interface)
    }

    /// A process that keeps the name of this interface's lock without using the interface: until it
    /// ends, EtherCAT sockets alone are the lock, and two programs that open the interface in the
    /// same instant may refuse each other.
    #[must_use]
    pub fn squatter(&self) -> Option<&Owner> {
        self.interface.squatter.as_ref()
    }
}

impl Link for PacketLink {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        send(&self.interface.socket, frame, SendFlags::empty())?;
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let received = self.ring.take(|frame| copy(frame, buffer));
        if received.is_some() || timeout.is_zero() {
            return Ok(received);
        }
        self.interface.socket.wait(timeout)?;
        match self.ring.take(|frame| copy(frame, buffer)) {
            // No frame comes this way any more, only the interface's error.
            None => self.interface.socket.receive(buffer),
            received => Ok(received),
        }
    }

    fn receive_in_place(&mut self, _: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        Ok(self.ring.take(take).is_some())
    }
}
