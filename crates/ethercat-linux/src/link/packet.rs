//! A network interface, by way of a raw packet socket.

use std::io;
use std::time::Duration;

use thiserror::Error;

use super::Link;
use super::lock::{self, InterfaceLock, Owner, Taken};
use crate::sys::packet_socket::{PacketSocket, interface_index, interface_names};
use rt::clock::{Clock, MonotonicClock};

/// EtherCAT frames of one network interface (AF_PACKET), one system call to send a frame and one to
/// take a frame that is already there.
///
/// A `receive` that has to wait costs two more: `ppoll`, and the second look.
#[derive(Debug)]
pub struct PacketLink {
    socket: PacketSocket,
    /// Held until the link is gone, by one that was opened as the owner.
    _lock: Option<InterfaceLock>,
    squatter: Option<Owner>,
}

impl PacketLink {
    /// The system calls it makes, by name.
    pub const SYSTEM_CALLS: [&str; 3] = ["sendto", "recvfrom", "ppoll"];

    /// Opens an interface. A network card just brought up takes its time to see the far end: this
    /// waits for it up to `patience`.
    ///
    /// # Errors
    /// Every [`OpenError`]: one sentence that names the interface and says what to do.
    pub fn open(interface: &str, patience: Duration) -> Result<Self, OpenError> {
        let (socket, _) = open_bound(interface)?;
        await_carrier(&socket, interface, patience)?;
        Ok(Self { socket, _lock: None, squatter: None })
    }

    /// As [`PacketLink::open`], for one MainDevice at a time: while this link lives, another process of this network
    /// namespace, of whatever user, that opens the interface in this way is refused and told who has it, as which
    /// `doing` goes there ("onbeat scan"). No lock is left behind, however this process ends.
    ///
    /// # Errors
    /// [`OpenError::Held`], at once, and those of [`PacketLink::open`].
    pub fn open_as_owner(interface: &str, patience: Duration, doing: &str) -> Result<Self, OpenError> {
        let refused = |source| OpenError::Refused { interface: interface.into(), source };
        let (socket, index) = open_bound(interface)?;
        // Behind the socket: only whoever has one is believed to own the interface.
        let inode = socket.inode().map_err(refused)?;
        let (lock, squatter) = match lock::take(index, inode, doing).map_err(refused)? {
            Taken::Ours(lock) => (Some(lock), None),
            Taken::Squatted(squatter) => (None, Some(squatter)),
            Taken::Held(owner) => return Err(OpenError::Held { interface: interface.into(), owner }),
        };
        await_carrier(&socket, interface, patience)?;
        Ok(Self { socket, _lock: lock, squatter })
    }

    /// Looks whether an interface is there, up, and sees its far end; several system calls, for no real-time thread.
    ///
    /// # Errors
    /// As [`PacketLink::open`].
    pub fn check(interface: &str) -> Result<(), OpenError> {
        let socket = unbound(interface)?.0;
        await_carrier(&socket, interface, Duration::ZERO)
    }

    /// A process that keeps the name of this interface's lock without using the interface: until it is gone the lock
    /// goes by EtherCAT sockets alone, and two who open it in the same instant may refuse each other.
    #[must_use]
    pub fn squatter(&self) -> Option<&Owner> {
        self.squatter.as_ref()
    }
}

fn await_carrier(socket: &PacketSocket, interface: &str, patience: Duration) -> Result<(), OpenError> {
    let clock = MonotonicClock;
    let end = clock.now() + patience;
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

impl Link for PacketLink {
    fn transmit(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.send(frame)
    }

    fn receive(&mut self, buffer: &mut [u8], timeout: Duration) -> io::Result<Option<usize>> {
        let received = self.socket.receive(buffer)?;
        if received.is_some() || timeout.is_zero() {
            return Ok(received);
        }
        self.socket.wait(timeout)?;
        self.socket.receive(buffer)
    }
}

/// A socket bound to an interface that exists and is up, whether or not it sees a far end.
pub(crate) fn open_socket(interface: &str) -> Result<PacketSocket, OpenError> {
    open_bound(interface).map(|(socket, _)| socket)
}

/// The same, with the interface's index.
fn open_bound(interface: &str) -> Result<(PacketSocket, u32), OpenError> {
    let name = || interface.to_owned();
    let (socket, index) = unbound(interface)?;
    socket.bind(index).map_err(|source| match source.raw_os_error() {
        Some(libc::ENOPROTOOPT) => OpenError::KernelTooOld { interface: name() },
        Some(libc::ENETDOWN) => OpenError::InterfaceDown { interface: name() },
        _ => OpenError::Refused { interface: name(), source },
    })?;
    Ok((socket, index))
}

/// A socket that receives nothing, and the index of an interface that is up.
fn unbound(interface: &str) -> Result<(PacketSocket, u32), OpenError> {
    let name = || interface.to_owned();
    let index = interface_index(interface)
        .ok_or_else(|| OpenError::NoSuchInterface { interface: name(), present: present_interfaces() })?;
    let socket = PacketSocket::new().map_err(|source| match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => OpenError::NotPermitted { interface: name() },
        _ => OpenError::Refused { interface: name(), source },
    })?;
    let refused = |source| OpenError::Refused { interface: name(), source };
    if !socket.interface_state(interface).map_err(refused)?.up {
        return Err(OpenError::InterfaceDown { interface: name() });
    }
    Ok((socket, index))
}

/// Names of the interfaces there are, joined for a sentence.
fn present_interfaces() -> String {
    let names = interface_names();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Why an interface could not be opened.
#[non_exhaustive]
#[derive(Debug, Error)]
pub enum OpenError {
    /// No interface has this name.
    #[error("interface {interface}: there is none of this name; name one of: {present}")]
    NoSuchInterface {
        /// The name asked for.
        interface: String,
        /// The names there are.
        present: String,
    },
    /// The process may not open raw sockets.
    #[error(
        "interface {interface}: sending EtherCAT frames needs the capability CAP_NET_RAW; run as root, or \
         give it once with `sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep` and the program's path, after \
         `chown root:GROUP` and `chmod 750`: whoever may start it can take the bus"
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// Another process is the MainDevice at this interface.
    #[error("interface {interface}: {owner} has it; end that, or attach to its IPC: `onbeat top`")]
    Held {
        /// The interface.
        interface: String,
        /// The process.
        owner: Owner,
    },
    /// The interface is administratively down.
    #[error("interface {interface}: it is down; bring it up with `sudo ip link set {interface} up`")]
    InterfaceDown {
        /// The interface.
        interface: String,
    },
    /// The interface is up and sees nobody at the other end.
    #[error(
        "interface {interface}: no carrier; plug the cable into the IN port of the first SubDevice and power it"
    )]
    NoCarrier {
        /// The interface.
        interface: String,
    },
    /// The kernel cannot hide a socket's own frames from it.
    #[error(
        "interface {interface}: this kernel shows a raw socket its own frames (PACKET_IGNORE_OUTGOING is \
         missing); use Linux 4.20 or later"
    )]
    KernelTooOld {
        /// The interface.
        interface: String,
    },
    /// Anything else the operating system said.
    #[error("interface {interface}: the operating system refused a raw socket: {source}")]
    Refused {
        /// The interface.
        interface: String,
        /// The system's error.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_missing_rights_is_the_readmes() {
        let error = OpenError::NotPermitted { interface: "x".into() }.to_string();
        let readme = include_str!("../../../../README.md");
        for part in
            ["sudo setcap cap_net_raw,cap_sys_nice,cap_ipc_lock+ep ", "chown root:GROUP", "chmod 750"]
        {
            assert!(error.contains(part.trim_end()) && readme.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn a_missing_interface_is_named_beside_those_there_are() {
        let error = PacketLink::open("nonesuch0", Duration::ZERO).unwrap_err().to_string();
        assert!(
            error.starts_with("interface nonesuch0: there is none of this name; name one of: "),
            "{error}"
        );
        assert!(error.contains("lo"), "{error}");
        let error = PacketLink::open("a\0b", Duration::ZERO).unwrap_err();
        assert!(matches!(error, OpenError::NoSuchInterface { .. }));
    }
}
