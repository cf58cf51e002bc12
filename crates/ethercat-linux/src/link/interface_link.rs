//! A network interface, by the link that was chosen for it.

use std::time::Duration;
use std::{fmt, io};

use rt::clock::{Clock, MonotonicClock};

use super::interface::Interface;
use super::lock::Owner;
use super::xdp::{Attached, Demand};
use super::{Link, OpenError, PacketLink, XdpLink};

/// Way to a network interface's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// A packet socket: every interface, CAP_NET_RAW.
    #[default]
    Packet,
    /// AF_XDP: fewer of the kernel's steps for a frame; CAP_BPF and CAP_NET_ADMIN, too.
    Xdp,
    /// AF_XDP that polls the driver for frames instead of waiting for its interrupts.
    XdpPolled,
    /// AF_XDP if the interface's driver runs the program (native), else a packet socket. Some
    /// drivers reset their card for that, which interrupts the carrier for a while; so it is used
    /// on request only.
    Auto,
}

/// A network interface as its one MainDevice.
#[derive(Debug)]
#[non_exhaustive]
pub enum InterfaceLink {
    /// By a packet socket.
    Packet(PacketLink),
    /// By AF_XDP.
    Xdp(XdpLink),
    /// By a packet socket, as [`LinkKind::Auto`] found no AF_XDP to choose, for this reason.
    PacketFor(PacketLink, OpenError),
}

impl InterfaceLink {
    /// Opens an interface by this kind of link, as [`PacketLink::open_as_owner`] does.
    ///
    /// # Errors
    /// The errors of the link; [`LinkKind::Auto`] has only the errors of a packet socket.
    pub fn open_as_owner(
        interface: &str,
        kind: LinkKind,
        timeout: Duration,
        doing: &str,
    ) -> Result<Self, OpenError> {
        Self::own(interface, kind, Some(timeout), doing)
    }

    /// Opens both ends of a ring; one of them may still be without carrier after `timeout`, as the
    /// ring may be open there.
    ///
    /// # Errors
    /// The errors of [`InterfaceLink::open_as_owner`]; [`OpenError::NoCarrier`] if neither has a
    /// carrier.
    pub fn open_ring(
        names: [&str; 2],
        kind: LinkKind,
        timeout: Duration,
        doing: &str,
    ) -> Result<(Self, Self), OpenError> {
        let [first, second] = names.map(|name| Self::own(name, kind, None, doing));
        let ends = (first?, second?);
        let end = MonotonicClock.now() + timeout;
        let left = || end.since(MonotonicClock.now());
        let first = ends.0.interface().await_carrier(Some(left()));
        // The time is one for both.
        match ends.1.interface().await_carrier(Some(left())) {
            Err(OpenError::NoCarrier { .. }) if first.is_ok() => {}
            Ok(()) if matches!(first, Err(OpenError::NoCarrier { .. })) => {}
            second => first.and(second)?,
        }
        Ok(ends)
    }

    fn own(
        interface: &str,
        kind: LinkKind,
        timeout: Option<Duration>,
        doing: &str,
    ) -> Result<Self, OpenError> {
        let interface = Interface::own(interface, doing)?;
        let demand = Demand { native: kind == LinkKind::Auto, polled: kind == LinkKind::XdpPolled };
        if kind == LinkKind::Packet {
            return PacketLink::on(interface, timeout).map(Self::Packet);
        }
        match Attached::to(&interface, timeout, demand) {
            Ok(attached) => Ok(Self::Xdp(XdpLink::of(attached, interface))),
            Err(why) if kind == LinkKind::Auto => {
                PacketLink::on(interface, timeout).map(|link| Self::PacketFor(link, why))
            }
            Err(error) => Err(error),
        }
    }

    fn interface(&self) -> &Interface {
        match self {
            Self::Packet(link) | Self::PacketFor(link, _) => link.interface(),
            Self::Xdp(link) => link.interface(),
        }
    }

    /// As [`PacketLink::squatter`].
    #[must_use]
    pub fn squatter(&self) -> Option<&Owner> {
        match self {
            Self::Packet(link) | Self::PacketFor(link, _) => link.squatter(),
            Self::Xdp(link) => link.squatter(),
        }
    }
}

impl Link for InterfaceLink {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        match self {
            Self::Packet(link) | Self::PacketFor(link, _) => link.transmit(frame),
            Self::Xdp(link) => link.transmit(frame),
        }
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        match self {
            Self::Packet(link) | Self::PacketFor(link, _) => link.receive(buffer, timeout),
            Self::Xdp(link) => link.receive(buffer, timeout),
        }
    }

    fn receive_in_place(&mut self, buffer: &mut [u8], take: &mut dyn FnMut(&[u8])) -> io::Result<bool> {
        match self {
            Self::Packet(link) | Self::PacketFor(link, _) => link.receive_in_place(buffer, take),
            Self::Xdp(link) => link.receive_in_place(buffer, take),
        }
    }
}

/// Words for the way its frames go.
impl fmt::Display for InterfaceLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packet(_) => f.write_str("packet socket"),
            Self::Xdp(link) => link.mode().fmt(f),
            Self::PacketFor(_, why) => write!(f, "packet socket, as AF_XDP is not to be had: {why}"),
        }
    }
}
