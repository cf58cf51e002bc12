//! A network interface, by the link that was chosen for it.

use std::time::Duration;
use std::{fmt, io};

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::wire::ethernet;
use rt::clock::{Clock, MonotonicClock};

use super::lock::{InterfaceLock, Owner, Taken};
use super::xdp::{Attached, Demand};
use super::{Link, OpenError, PacketLink, XdpLink, lock};
use crate::sys::packet_socket::{PacketSocket, interface_index, interface_names};

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

/// An interface with a packet socket for its EtherCAT frames, which every kind of link needs. The
/// socket makes the interface promiscuous, shows others that it is in use, and notices when it goes
/// down.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) socket: PacketSocket,
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Held while the interface is open, if it was opened as the owner.
    _lock: Option<InterfaceLock>,
    pub(crate) squatter: Option<Owner>,
}

impl Interface {
    /// An interface that exists and is up, whether or not it sees a far end.
    pub(crate) fn open(interface: &str) -> Result<Self, OpenError> {
        let name = interface.to_owned();
        let (socket, index) = unbound(interface)?;
        socket.bind(index).map_err(|source| match source.raw_os_error() {
            Some(libc::ENOPROTOOPT) => OpenError::KernelTooOld { interface: name.clone() },
            Some(libc::ENETDOWN) => OpenError::InterfaceDown { interface: name.clone() },
            _ => OpenError::Refused { interface: name.clone(), source },
        })?;
        Ok(Self { socket, name, index, _lock: None, squatter: None })
    }

    /// The same, for one MainDevice at a time, as which `doing` goes there.
    pub(crate) fn own(interface: &str, doing: &str) -> Result<Self, OpenError> {
        let opened = Self::open(interface)?;
        let refused = |source| opened.refused(source);
        if opened.socket.interface_state(interface).map_err(refused)?.loopback {
            return Err(OpenError::Loopback { interface: opened.name, present: present_interfaces() });
        }
        // After the socket: only a process with a socket counts as the owner of the interface.
        let inode = opened.socket.inode().map_err(refused)?;
        let (lock, squatter) = match lock::take(opened.index, inode, doing).map_err(refused)? {
            Taken::Ours(lock) => (Some(lock), None),
            Taken::Squatted(squatter) => (None, Some(squatter)),
            Taken::Held(owner) => return Err(OpenError::Held { interface: opened.name, owner }),
        };
        Ok(Self { _lock: lock, squatter, ..opened })
    }

    /// Looks whether an interface is there, up, and sees its far end.
    pub(crate) fn check(interface: &str) -> Result<(), OpenError> {
        let socket = unbound(interface)?.0;
        await_carrier(&socket, interface, Duration::ZERO)
    }

    /// Waits up to `timeout` for the carrier; `None` does not wait.
    pub(crate) fn await_carrier(&self, timeout: Option<Duration>) -> Result<(), OpenError> {
        timeout.map_or(Ok(()), |timeout| await_carrier(&self.socket, &self.name, timeout))
    }

    pub(crate) fn refused(&self, source: io::Error) -> OpenError {
        OpenError::Refused { interface: self.name.clone(), source }
    }
}

fn await_carrier(socket: &PacketSocket, interface: &str, timeout: Duration) -> Result<(), OpenError> {
    let clock = MonotonicClock;
    let end = clock.now() + timeout;
    let carrier = || {
        socket
            .interface_state(interface)
            .map(|state| state.carrier)
            .map_err(|source| OpenError::Refused { interface: interface.into(), source })
    };
    while !carrier()? {
        if clock.now() >= end {
            return Err(OpenError::NoCarrier { interface: interface.into() });
        }
        clock.sleep_until(clock.now() + Duration::from_millis(20));
    }
    Ok(())
}

/// A socket that receives nothing, and the index of an interface that is up.
fn unbound(interface: &str) -> Result<(PacketSocket, u32), OpenError> {
    let name = || interface.to_owned();
    if interface.is_empty() {
        return Err(OpenError::NoName { present: present_interfaces() });
    }
    let index = interface_index(interface)
        .ok_or_else(|| OpenError::NoSuchInterface { interface: name(), present: present_interfaces() })?;
    let socket = PacketSocket::new().map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { interface: name() },
        _ => OpenError::Refused { interface: name(), source },
    })?;
    let refused = |source| OpenError::Refused { interface: name(), source };
    let state = socket.interface_state(interface).map_err(refused)?;
    if !state.up {
        return Err(OpenError::InterfaceDown { interface: name() });
    }
    if state.mtu < MAXIMUM_FRAME_LENGTH - ethernet::HEADER_LENGTH {
        return Err(OpenError::SmallMtu { interface: name(), mtu: state.mtu });
    }
    Ok((socket, index))
}

/// Names of the interfaces there are, joined for a sentence.
fn present_interfaces() -> String {
    let names = interface_names();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
