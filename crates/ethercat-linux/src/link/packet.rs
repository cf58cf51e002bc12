//! A network interface, by way of a raw packet socket.

use std::io;
use std::time::Duration;

use rustix::net::{SendFlags, send};

use super::interface::Interface;
use super::lock::Owner;
use super::{Link, OpenError, copy};
use crate::sys::packet_ring::PacketRing;

/// EtherCAT frames of one network interface (AF_PACKET): one system call to send a frame, and none to take a frame that
/// is already there.
///
/// A `receive` that has to wait costs one: `ppoll`; if no frame came another, which returns the interface's error.
#[derive(Debug)]
pub struct PacketLink {
    ring: PacketRing,
    interface: Interface,
}

impl PacketLink {
    /// The system calls it makes, by name; those of [`XdpLink`](super::XdpLink) are the same.
    pub const SYSTEM_CALLS: [&str; 3] = ["sendto", "recvfrom", "ppoll"];

    /// Time a network card just brought up may take to see the far end of its cable.
    pub const CARRIER_TIMEOUT: Duration = Duration::from_secs(5);

    /// Opens an interface. A network card just brought up takes its time to see the far end: this
    /// waits for it up to `timeout`.
    ///
    /// # Errors
    /// Every [`OpenError`]: one sentence that names the interface and says what to do.
    pub fn open(interface: &str, timeout: Duration) -> Result<Self, OpenError> {
        Self::on(Interface::open(interface)?, Some(timeout))
    }

    /// As [`PacketLink::open`], for one MainDevice at a time: while this link lives, another process of this network
    /// namespace, of whatever user, that opens the interface in this way is refused with the name of its holder, as which
    /// `doing` goes there ("onbeat scan"). No lock is left behind, however this process ends.
    ///
    /// # Errors
    /// [`OpenError::Held`], at once, and those of [`PacketLink::open`].
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

    /// Looks whether an interface is there, up, and sees its far end; several system calls, for no real-time thread.
    ///
    /// # Errors
    /// As [`PacketLink::open`].
    pub fn check(interface: &str) -> Result<(), OpenError> {
        Interface::check(interface)
    }

    /// A process that keeps the name of this interface's lock without using the interface: until it is gone the lock
    /// goes by EtherCAT sockets alone, and two who open it in the same instant may refuse each other.
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
