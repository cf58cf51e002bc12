//! Received frames in memory shared with the kernel (PACKET_RX_RING, packet(7)): taking one is no
//! system call.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::packet_socket::PacketSocket;

/// Frames received and not yet taken: beyond these the kernel drops.
const FRAMES: usize = 128;

/// Bytes of a frame's place: header, and the longest EtherCAT frame.
const PLACE: usize = 2048;

/// Bytes that are contiguous in the kernel's memory: whole pages, for any page size.
const BLOCK: usize = 1 << 16;

/// Bytes of all.
const RING: usize = FRAMES * PLACE;

/// The place is ours until we write its status (linux/if_packet.h).
const TP_STATUS_USER: u32 = 1;
const TP_STATUS_KERNEL: u32 = 0;

/// `struct tpacket_req` of linux/if_packet.h.
#[repr(C)]
struct Request {
    block_size: libc::c_uint,
    blocks: libc::c_uint,
    frame_size: libc::c_uint,
    frames: libc::c_uint,
}

/// The part of `struct tpacket2_hdr` of linux/if_packet.h that is read here.
#[repr(C)]
#[derive(Clone, Copy)]
struct RingHeader {
    status: u32,
    length: u32,
    captured: u32,
    offset: u16,
}

/// Frames of one socket, in the order they came.
#[derive(Debug)]
pub(crate) struct PacketRing {
    start: NonNull<u8>,
    /// The place of the next frame.
    next: usize,
}

impl PacketRing {
    /// Receives a socket's frames here, and no longer in [`PacketSocket::receive`]. Pages are
    /// present when this returns, and cannot be taken away: no access faults.
    ///
    /// # Errors
    /// ENOMEM without memory for them.
    pub(crate) fn of(socket: &PacketSocket) -> io::Result<Self> {
        const PACKET_RX_RING: libc::c_int = 5;
        const PACKET_VERSION: libc::c_int = 10;
        const TPACKET_V2: libc::c_int = 1;
        let request = Request {
            block_size: BLOCK as libc::c_uint,
            blocks: (RING / BLOCK) as libc::c_uint,
            frame_size: PLACE as libc::c_uint,
            frames: FRAMES as libc::c_uint,
        };
        socket.set_option(PACKET_VERSION, &TPACKET_V2)?;
        socket.set_option(PACKET_RX_RING, &request)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses a range that nothing else uses, so no memory of this process
        // changes.
        let start = unsafe { mmap(ptr::null_mut(), RING, protection, flags, socket, 0)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, next: 0 })
    }

    /// Calls `take` with a waiting frame, in place, and returns its result.
    pub(crate) fn take<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        // SAFETY: `next` is below FRAMES: the place lies inside the mapping.
        let place = unsafe { self.start.add(self.next * PLACE) };
        // SAFETY: a place begins with its status, aligned as the mapping's pages are; kernel and
        // process change it as an atomic does, and it is mapped as long as `self` lives.
        let status = unsafe { AtomicU32::from_ptr(place.as_ptr().cast()) };
        // Acquire: the kernel writes the frame before the status.
        if status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the status gives the place to this process: the kernel has written this header
        // there, and does not change it.
        let header = unsafe { place.cast::<RingHeader>().read() };
        let offset = usize::from(header.offset).min(PLACE);
        let length = (header.captured as usize).min(PLACE - offset);
        // SAFETY: `offset + length` is inside the place, which the kernel does not change until its
        // status is written below; `self`, and with it the mapping, is borrowed until then.
        let frame = unsafe { slice::from_raw_parts(place.as_ptr().add(offset), length) };
        let taken = take(frame);
        // Release: the frame is read before the kernel may write the next one there.
        status.store(TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        Some(taken)
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `of`, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), RING) };
    }
}

// SAFETY: the mapping is memory of the whole process, and `take` needs the ring for itself.
unsafe impl Send for PacketRing {}
// SAFETY: nothing but `take`, which needs the ring exclusively, accesses the mapping.
unsafe impl Sync for PacketRing {}
