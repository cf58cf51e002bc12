//! A socket for the frames of one queue of an interface (AF_XDP): frames are in memory shared with
//! the kernel, and rings pass their ownership.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING, XdpDesc, XdpDescOptions, XdpMmapOffsets,
    XdpOptionsFlags,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, sockopt};

use super::xdp_ring::{Memory, PLACE, Ring, place, place_of};

/// Frames received and not yet taken: beyond these the kernel drops, and counts.
const RECEIVED: u32 = 128;

/// Frames sent and not yet on the wire: beyond these none is taken.
const SENT: u32 = 128;

/// Most time for which the kernel asks the driver in one system call, and most frames that it takes
/// from it.
const POLL_MICROSECONDS: libc::c_int = 20;
const POLL_BUDGET: libc::c_int = 16;

/// Frames of one queue.
#[derive(Debug)]
pub(crate) struct XdpSocket {
    descriptor: OwnedFd,
    received: Ring<XdpDesc>,
    free: Ring<u64>,
    sending: Option<Sending>,
    memory: Memory,
    /// The driver itself reads and writes the memory, and says when it sleeps.
    zero_copy: bool,
}

/// The way out.
#[derive(Debug)]
struct Sending {
    submitted: Ring<XdpDesc>,
    completed: Ring<u64>,
    /// Places of no frame, the last used first: its lines of cache are still near.
    free: Vec<u64>,
    /// The last frame waits for space in the interface's queue.
    blocked: bool,
}

impl XdpSocket {
    /// A socket for a queue, without frames until a program redirects some to it; `sends` if it can
    /// send, too. Its memory is present when this returns and stays so: the kernel holds it.
    ///
    /// # Errors
    /// EINVAL if there is no such queue, EBUSY if it has another's socket, ENOBUFS if no more
    /// memory may be locked, EPERM without CAP_NET_RAW, EAFNOSUPPORT on a kernel without AF_XDP.
    pub(crate) fn bind(index: u32, queue: u32, sends: bool, copied: bool) -> io::Result<Self> {
        let descriptor =
            rustix::net::socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let socket = descriptor.as_fd();
        let memory = Memory::new(if sends { RECEIVED + SENT } else { RECEIVED })?;
        sockopt::set_xdp_umem_reg(socket, memory.registration())?;
        sockopt::set_xdp_umem_fill_ring_size(socket, RECEIVED)?;
        // Bound only with a ring of this kind.
        sockopt::set_xdp_umem_completion_ring_size(socket, SENT)?;
        sockopt::set_xdp_rx_ring_size(socket, RECEIVED)?;
        if sends {
            sockopt::set_xdp_tx_ring_size(socket, SENT)?;
        }
        let offsets = sockopt::xdp_mmap_offsets(socket)?;
        let received = Ring::of(socket, XDP_PGOFF_RX_RING, &offsets.rx, RECEIVED)?;
        let mut free = Ring::of(socket, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, RECEIVED)?;
        (0..RECEIVED).for_each(|number| free.put(place(number)));
        let sending = if sends { Some(Sending::of(socket, &offsets)?) } else { None };
        let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
        flags.set(SocketAddrXdpFlags::XDP_COPY, copied);
        rustix::net::bind(socket, &SocketAddrXdp::new(flags, index, queue))?;
        let zero_copy = sockopt::xdp_options(socket)?.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY);
        Ok(Self { descriptor, received, free, sending, memory, zero_copy })
    }

    /// From now on [`XdpSocket::poll_driver`], and each send, take the frames from the driver in
    /// the caller's time, and interrupts wait if the interface is configured for it
    /// (napi_defer_hard_irqs, gro_flush_timeout).
    ///
    /// # Errors
    /// EPERM without CAP_NET_ADMIN, ENOPROTOOPT before Linux 5.11 and without
    /// CONFIG_NET_RX_BUSY_POLL.
    pub(crate) fn prefer_polling(&self) -> io::Result<()> {
        const SO_BUSY_POLL: libc::c_int = 46;
        const SO_PREFER_BUSY_POLL: libc::c_int = 69;
        const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
        for (option, value) in [
            (SO_PREFER_BUSY_POLL, 1),
            (SO_BUSY_POLL, POLL_MICROSECONDS),
            (SO_BUSY_POLL_BUDGET, POLL_BUDGET),
        ] {
            let length = size_of_val(&value) as libc::socklen_t;
            // SAFETY: pointer and length belong to a live integer, which the kernel only reads.
            let result = unsafe {
                libc::setsockopt(
                    self.descriptor.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const value).cast(),
                    length,
                )
            };
            if result < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// Sends one frame: one system call, or none if the driver polls. A frame that finds the
    /// interface's queue full leaves before the next, and none is taken until then.
    ///
    /// # Errors
    /// ENETDOWN and ENXIO if the interface is down or removed, ENOBUFS without carrier or space,
    /// EMSGSIZE: the frame does not leave later.
    pub(crate) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let Some(sending) = &mut self.sending else { return Err(Errno::OPNOTSUPP.into()) };
        sending.collect();
        if frame.len() > PLACE {
            return Err(Errno::MSGSIZE.into());
        }
        if sending.blocked {
            let woken = wake_to_send(&self.descriptor);
            sending.blocked = woken.is_err_and(|error| error != Errno::BUSY);
            woken.map_err(as_packet_socket)?;
        }
        let Some(address) = sending.free.pop() else {
            // A driver may wait for this call with the earlier frames.
            return wake_to_send(&self.descriptor).and(Err(Errno::NOBUFS)).map_err(as_packet_socket);
        };
        self.memory.write(address, frame);
        let options = XdpDescOptions::empty();
        sending.submitted.put(XdpDesc { addr: address, len: frame.len() as u32, options });
        if self.zero_copy && !sending.submitted.sleeps() {
            return Ok(());
        }
        let Err(error) = wake_to_send(&self.descriptor) else { return Ok(()) };
        match error {
            // Returned before the kernel reads the ring.
            Errno::NETDOWN | Errno::NXIO => {
                sending.submitted.withdraw();
                sending.free.push(address);
            }
            // Dropped, and its place given back.
            Errno::BUSY => {}
            _ => sending.blocked = true,
        }
        if error == Errno::AGAIN { Ok(()) } else { Err(as_packet_socket(error)) }
    }

    /// Calls `take` with a waiting frame, in place, and returns its result.
    pub(crate) fn take<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let frame = self.received.next()?;
        // SAFETY: the kernel has handed it over with this entry, and gets its place back below.
        let taken = take(unsafe { self.memory.frame(frame.addr, frame.len as usize) });
        self.received.pass();
        self.free.put(place_of(frame.addr));
        if self.zero_copy && self.free.sleeps() {
            self.poll_driver();
        }
        Some(taken)
    }

    /// Wakes a driver that ran out of places for frames; polls it if polling is preferred: one
    /// system call.
    pub(crate) fn poll_driver(&self) {
        // The packet socket of the interface reports if it is down or removed.
        let _ = rustix::net::recv(&self.descriptor, &mut [0; 0], RecvFlags::DONTWAIT);
    }

    /// True if the driver itself reads and writes the frames' memory.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.zero_copy
    }

    /// Number of received frames that found no space so far.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        let counts = sockopt::xdp_statistics(&self.descriptor)?;
        // Without a place, and without an entry for it.
        Ok(counts.rx_dropped + counts.rx_ring_full.unwrap_or(0))
    }

    /// Forgets the error it has, so that it can be waited for again.
    pub(crate) fn forget_error(&self) {
        let _ = sockopt::socket_error(&self.descriptor);
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Sending {
    fn of(socket: BorrowedFd<'_>, offsets: &XdpMmapOffsets) -> io::Result<Self> {
        let submitted = Ring::of(socket, XDP_PGOFF_TX_RING, &offsets.tx, SENT)?;
        let completed = Ring::of(socket, XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, SENT)?;
        let free = (RECEIVED..RECEIVED + SENT).map(place).collect();
        Ok(Self { submitted, completed, free, blocked: false })
    }

    /// Collects the places of frames that have left: never more than there are, so that the list
    /// does not grow.
    fn collect(&mut self) {
        while let Some(address) = self.completed.next() {
            self.completed.pass();
            self.free.push(address);
        }
    }
}

fn wake_to_send(descriptor: &OwnedFd) -> Result<(), Errno> {
    rustix::net::send(descriptor, &[], SendFlags::DONTWAIT).map(drop)
}

/// No carrier, or no space in the interface's queue: the errors of a packet socket.
fn as_packet_socket(error: Errno) -> io::Error {
    match error {
        Errno::AGAIN | Errno::BUSY => Errno::NOBUFS.into(),
        other => other.into(),
    }
}
