//! Memory of an AF_XDP socket's frames, in places of one size.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::net::xdp::{XdpUmemReg, XdpUmemRegFlags};

/// Bytes of a frame's place: headroom that a driver may need (256), and the longest EtherCAT frame.
pub(super) const PLACE: usize = 2048;

/// Address of a place.
pub(super) fn place(number: u32) -> u64 {
    u64::from(number) * PLACE as u64
}

/// Address of the place that an address lies in.
pub(super) fn place_of(address: u64) -> u64 {
    address & !(PLACE as u64 - 1)
}

/// Memory of the frames, which the kernel pins.
#[derive(Debug)]
pub(super) struct Memory {
    start: NonNull<u8>,
    bytes: usize,
}

impl Memory {
    pub(super) fn new(places: u32) -> io::Result<Self> {
        let bytes = places as usize * PLACE;
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::POPULATE);
        // SAFETY: the kernel chooses a range that nothing else uses, so no memory of this process
        // changes.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, protection, flags)? };
        let memory = Self { start: NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?, bytes };
        // SAFETY: the whole mapping, nothing else. A child does not get pages that the kernel holds
        // for this process.
        unsafe { madvise(start, bytes, Advice::LinuxDontFork)? };
        Ok(memory)
    }

    pub(super) fn registration(&self) -> XdpUmemReg {
        XdpUmemReg {
            addr: self.start.as_ptr() as u64,
            len: self.bytes as u64,
            chunk_size: PLACE as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        }
    }

    pub(super) fn write(&mut self, address: u64, frame: &[u8]) {
        let (start, length) = self.part(address, frame.len());
        // SAFETY: `part` lies in the mapping, in a place that is no frame's of the kernel's, and
        // `frame` outside it.
        unsafe { ptr::copy_nonoverlapping(frame.as_ptr(), start, length) };
    }

    /// A frame in place.
    ///
    /// # Safety
    /// The kernel has handed it over, and gets its place back when this is used no more.
    pub(super) unsafe fn frame(&self, address: u64, length: usize) -> &[u8] {
        let (start, length) = self.part(address, length);
        // SAFETY: `part` lies in the mapping, and nothing writes there meanwhile: the caller
        // ensures it for the kernel, and this process writes only to places that it sends from.
        unsafe { slice::from_raw_parts(start, length) }
    }

    /// A part of the memory, cut where the memory ends.
    fn part(&self, address: u64, length: usize) -> (*mut u8, usize) {
        let address = (address as usize).min(self.bytes);
        // SAFETY: `address` is in the mapping, or its end.
        (unsafe { self.start.add(address) }.as_ptr(), length.min(self.bytes - address))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `new`, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the mapping is memory of the whole process, and `write` needs it for itself.
unsafe impl Send for Memory {}
// SAFETY: a shared reference only allows reads, of places that nothing writes meanwhile.
unsafe impl Sync for Memory {}
