//! EtherCAT frames of one interface, with the kernel's receive time stamps (`SO_TIMESTAMPNS`,
//! socket(7) and packet(7)).

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimeout, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockType, SockaddrLike as _, bind,
    recvmsg, send, setsockopt, socket,
};
use nix::sys::time::TimeVal;

/// EtherType of EtherCAT (ETG.1000.4, 5.1).
const ETHERTYPE: u16 = 0x88A4;

/// Blocking raw socket on one interface; receives no frame it sent itself.
#[derive(Debug)]
pub(crate) struct StampedSocket {
    descriptor: OwnedFd,
    control: Vec<u8>,
}

/// Received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// Length of the frame, cut to the buffer, bytes.
    pub(crate) length: usize,
    /// Time stamp of the kernel, ns of `CLOCK_REALTIME`; `None` without one.
    pub(crate) stamp_ns: Option<u64>,
}

impl StampedSocket {
    /// Opens a socket on the interface of this name in this thread's network namespace. Receiving
    /// times out after `timeout`.
    ///
    /// # Errors
    /// EPERM without `CAP_NET_RAW`; ENODEV without such an interface.
    pub(crate) fn open(interface: &str, timeout: Duration) -> io::Result<Self> {
        let descriptor = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, None)?;
        let index = rustix::net::netdevice::name_to_index(&descriptor, interface)?;
        ignore_outgoing(descriptor.as_raw_fd())?;
        setsockopt(&descriptor, ReceiveTimestampns, &true)?;
        let timeout = TimeVal::new(timeout.as_secs() as _, timeout.subsec_micros() as _);
        setsockopt(&descriptor, ReceiveTimeout, &timeout)?;
        bind(descriptor.as_raw_fd(), &address(index)?)?;
        Ok(Self { descriptor, control: nix::cmsg_space!(libc::timespec) })
    }

    /// Makes room for so many bytes of frames that wait to be read, as far as it is granted.
    pub(crate) fn make_room(&self, bytes: usize) {
        if setsockopt(&self.descriptor, RcvBufForce, &bytes).is_err() {
            let _ = setsockopt(&self.descriptor, RcvBuf, &bytes);
        }
    }

    /// Sends one frame.
    ///
    /// # Errors
    /// The operating system's error: ENETDOWN if the interface is down.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.descriptor.as_raw_fd(), frame, MsgFlags::empty())?;
        Ok(())
    }

    /// Sleeps until a frame comes; `None` on a timeout or a signal.
    ///
    /// # Errors
    /// The operating system's error.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        let mut parts = [io::IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(
            self.descriptor.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        );
        let message = match message {
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let stamp_ns = message.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(stamp) => {
                u64::try_from(Duration::from(stamp).as_nanos()).ok()
            }
            _ => None,
        });
        Ok(Some(Arrival { length: message.bytes, stamp_ns }))
    }
}

/// PACKET_IGNORE_OUTGOING, Linux 4.20.
fn ignore_outgoing(descriptor: RawFd) -> io::Result<()> {
    const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
    let yes: libc::c_int = 1;
    let length = size_of_val(&yes) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value is an int of the length given that outlives the
    // call.
    let result = unsafe {
        libc::setsockopt(
            descriptor,
            libc::SOL_PACKET,
            PACKET_IGNORE_OUTGOING,
            (&raw const yes).cast(),
            length,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn address(index: u32) -> io::Result<LinkAddr> {
    // SAFETY: an all-zero sockaddr_ll is valid: it holds integers only.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = index as libc::c_int;
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer is to a live sockaddr_ll of the length given, which is copied.
    let address = unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(length)) };
    address.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
