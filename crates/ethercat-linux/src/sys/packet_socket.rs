//! A raw socket for the EtherCAT frames of one interface (AF_PACKET, packet(7)).

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;
use std::{io, mem, ptr};

use super::ppoll;

/// EtherType of EtherCAT (ETG.1000.4, 5.1).
pub(super) const ETHERTYPE: u16 = 0x88A4;

/// An interface's number, if there is one of this name.
pub(crate) fn interface_index(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: `name` is a terminated string that outlives the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => None,
        index => Some(index),
    }
}

/// Names of the interfaces this process sees, in the kernel's order.
pub(crate) fn interface_names() -> Vec<String> {
    // SAFETY: takes nothing; the list it returns is ours until it is freed below.
    let list = unsafe { libc::if_nameindex() };
    let mut names = Vec::new();
    let mut entry = list;
    // SAFETY: the list ends with an entry with a null name, and every entry before it has a
    // terminated name; a null list is not accessed.
    unsafe {
        while !entry.is_null() && !(*entry).if_name.is_null() {
            names.push(CStr::from_ptr((*entry).if_name).to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
    }
    names
}

/// State of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterfaceState {
    /// Administratively up.
    pub(crate) up: bool,
    /// The driver sees the far end.
    pub(crate) carrier: bool,
    /// The loopback interface of this machine.
    pub(crate) loopback: bool,
    /// Longest payload of a frame, bytes.
    pub(crate) mtu: usize,
}

/// Time of a frame's arrival, as the kernel says it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    /// When, ns of CLOCK_REALTIME; 0 if it was not stamped.
    pub(crate) realtime_ns: u64,
    /// Frames that the socket's queue had no space for so far, modulo 2^32.
    pub(crate) dropped: u32,
}

/// Non-blocking, bound to one interface and to EtherCAT's EtherType; sees no frame it sent itself.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    descriptor: OwnedFd,
}

impl PacketSocket {
    /// A socket that receives nothing yet.
    ///
    /// # Errors
    /// EPERM without `CAP_NET_RAW`.
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: takes integers only. Protocol 0: no frame is queued before `bind`.
        let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is open and owned by nothing else.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// State of the interface: up, carrier, MTU.
    pub(crate) fn interface_state(&self, name: &str) -> io::Result<InterfaceState> {
        // SAFETY: an all-zero ifreq is valid: integers, characters and a null pointer.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        // One byte stays zero: the name is terminated.
        let room = request.ifr_name.len() - 1;
        for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `request` is a valid ifreq with a terminated name; SIOCGIFFLAGS writes its flags.
        if unsafe { libc::ioctl(self.raw(), libc::SIOCGIFFLAGS as _, &mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: SIOCGIFFLAGS has filled this field of the union.
        let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
        let has = |flag| flags & flag != 0;
        // SAFETY: `request` is a valid ifreq with a terminated name; SIOCGIFMTU writes its MTU.
        if unsafe { libc::ioctl(self.raw(), libc::SIOCGIFMTU as _, &mut request) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: SIOCGIFMTU has filled this field of the union.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        Ok(InterfaceState {
            mtu: usize::try_from(mtu).unwrap_or(0),
            up: has(libc::IFF_UP),
            // The flag follows the driver up to a second late.
            carrier: has(libc::IFF_RUNNING) && self.has_link(request).unwrap_or(true),
            loopback: has(libc::IFF_LOOPBACK),
        })
    }

    /// Carrier of the interface that `request` names, as its driver reports it now; `None` if the
    /// driver does not report it.
    fn has_link(&self, mut request: libc::ifreq) -> Option<bool> {
        const SIOCETHTOOL: libc::c_ulong = 0x8946;
        const ETHTOOL_GLINK: u32 = 0x0A;
        // struct ethtool_value of linux/ethtool.h: command, and the answer.
        let mut value = [ETHTOOL_GLINK, 0];
        request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
        // SAFETY: `request` is a valid ifreq with a terminated name and the address of two words
        // that outlive the call, of which the kernel writes the second.
        let result = unsafe { libc::ioctl(self.raw(), SIOCETHTOOL as _, &mut request) };
        (result == 0).then_some(value[1] != 0)
    }

    /// Takes the interface's EtherCAT frames of any address, and not our own
    /// (PACKET_IGNORE_OUTGOING, Linux 4.20); frames sent pass no queueing discipline.
    ///
    /// # Errors
    /// ENOPROTOOPT on a kernel too old; ENETDOWN if the interface is down.
    pub(crate) fn bind(&self, index: u32) -> io::Result<()> {
        const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
        let index = index as libc::c_int;
        let yes: libc::c_int = 1;
        self.set_option(PACKET_IGNORE_OUTGOING, &yes)?;
        // Faster, not needed: some virtual devices refuse it.
        let _ = self.set_option(libc::PACKET_QDISC_BYPASS, &yes);
        let membership = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        self.set_option(libc::PACKET_ADD_MEMBERSHIP, &membership)?;

        // SAFETY: an all-zero sockaddr_ll is valid: it holds integers only.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = ETHERTYPE.to_be();
        address.sll_ifindex = index;
        let length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is a sockaddr_ll of the length given and outlives the call.
        let result = unsafe { libc::bind(self.raw(), (&raw const address).cast(), length) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// True if the interface it was bound to is removed for good: the kernel takes its number away
    /// (packet(7)). An interface that is down keeps it.
    pub(crate) fn interface_is_gone(&self) -> io::Result<bool> {
        // SAFETY: an all-zero sockaddr_ll is valid: it holds integers only.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        let mut length = size_of_val(&address) as libc::socklen_t;
        // SAFETY: `address` is valid to write to for the length given, which the kernel updates.
        let result = unsafe { libc::getsockname(self.raw(), (&raw mut address).cast(), &mut length) };
        if result == 0 { Ok(address.sll_ifindex <= 0) } else { Err(io::Error::last_os_error()) }
    }

    /// Takes a frame that is already there: one system call. A frame longer than `buffer` is cut.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        // SAFETY: the pointer and length belong to a live slice that is mutably borrowed.
        let length = unsafe { libc::recv(self.raw(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if length >= 0 {
            return Ok(Some(length as usize));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => Ok(None),
            _ => Err(error),
        }
    }

    /// Adds to each frame the instant at which the kernel took it from the driver (SO_TIMESTAMPNS,
    /// socket(7)), and the number of frames dropped by a full queue (SO_RXQ_OVFL). Also makes the
    /// queue long.
    ///
    /// # Errors
    /// ENOPROTOOPT on a kernel too old.
    pub(crate) fn stamp_arrivals(&self) -> io::Result<()> {
        const QUEUE: libc::c_int = 8 << 20;
        let yes: libc::c_int = 1;
        self.set_socket_option(libc::SO_TIMESTAMPNS, yes)?;
        self.set_socket_option(libc::SO_RXQ_OVFL, yes)?;
        // Longer is better, not needed: without CAP_NET_ADMIN as long as the machine allows.
        let _ = self
            .set_socket_option(libc::SO_RCVBUFFORCE, QUEUE)
            .or_else(|_| self.set_socket_option(libc::SO_RCVBUF, QUEUE));
        Ok(())
    }

    /// As [`PacketSocket::receive`], with the data that [`PacketSocket::stamp_arrivals`] requested.
    pub(crate) fn receive_stamped(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Stamp)>> {
        let mut vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // Of u64, so that control messages lie as their headers must.
        let mut control = [0_u64; 16];
        // SAFETY: an all-zero msghdr is valid: null pointers and lengths of zero.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: `message` names one live buffer and one live control buffer, each with its
        // length.
        let length = unsafe { libc::recvmsg(self.raw(), &mut message, 0) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        let mut stamp = Stamp::default();
        // SAFETY: `message` is as recvmsg left it: its control length covers whole messages in
        // `control`, which lives on; CMSG_NXTHDR gives null behind the last. Data is read
        // unaligned, of the type its kind has (socket(7)).
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(&message);
            while !header.is_null() {
                let data = libc::CMSG_DATA(header);
                match ((*header).cmsg_level, (*header).cmsg_type) {
                    (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                        let time = data.cast::<libc::timespec>().read_unaligned();
                        stamp.realtime_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
                    }
                    (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
                        stamp.dropped = data.cast::<u32>().read_unaligned();
                    }
                    _ => {}
                }
                header = libc::CMSG_NXTHDR(&message, header);
            }
        }
        Ok(Some((length as usize, stamp)))
    }

    fn set_socket_option(&self, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: pointer and length belong to a live integer, which the kernel only reads.
        let result = unsafe {
            libc::setsockopt(self.raw(), libc::SOL_SOCKET, option, (&raw const value).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until a frame is there or `timeout` has passed; a signal ends it early.
    pub(crate) fn wait(&self, timeout: Duration) -> io::Result<()> {
        ppoll(&mut [libc::pollfd { fd: self.raw(), events: libc::POLLIN, revents: 0 }], timeout)
    }

    pub(super) fn set_option<T>(&self, option: libc::c_int, value: &T) -> io::Result<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: pointer and length belong to a live value of the option's type, which the kernel
        // only reads.
        let result = unsafe {
            libc::setsockopt(self.raw(), libc::SOL_PACKET, option, ptr::from_ref(value).cast(), length)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Its inode number, by which the kernel lists it.
    pub(crate) fn inode(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.descriptor)?.st_ino)
    }

    fn raw(&self) -> libc::c_int {
        self.descriptor.as_raw_fd()
    }
}

/// Waits until a frame is there at any of these or `timeout` has passed; a signal ends it early.
pub(crate) fn wait_for_any<'a>(
    sockets: impl Iterator<Item = &'a PacketSocket>,
    timeout: Duration,
) -> io::Result<()> {
    let entry = |it: &PacketSocket| libc::pollfd { fd: it.raw(), events: libc::POLLIN, revents: 0 };
    let mut entries: Vec<_> = sockets.map(entry).collect();
    ppoll(&mut entries, timeout)
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}
