//! A network interface that is there and up, and may be ours alone.

use std::io;
use std::time::Duration;

use ethercat::link::MAXIMUM_FRAME_LENGTH;
use ethercat::wire::ethernet;

use super::OpenError;
use super::lock::{self, InterfaceLock, Owner, Taken};
use crate::sys::packet_socket::{PacketSocket, interface_index, interface_names};
use rt::clock::{Clock, MonotonicClock};

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
