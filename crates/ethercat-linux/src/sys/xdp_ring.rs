//! A ring of descriptors shared with the kernel (AF_XDP, if_xdp.h): one end writes and counts its
//! writes, the other reads and counts its reads.

use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, ptr, slice};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};
use rustix::net::xdp::{XdpRingOffset, XdpUmemReg, XdpUmemRegFlags};

/// One of an AF_XDP socket's four rings. `T` is plain integers.
#[derive(Debug)]
pub(super) struct Ring<T: Copy> {
    start: NonNull<u8>,
    bytes: usize,
    written: NonNull<AtomicU32>,
    read: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    count: u32,
    /// The count of our own end, as it is or will be in `written` or `read`.
    own: u32,
}

impl<T: Copy> Ring<T> {
    /// Maps the ring of `count` entries, a power of two, that the socket has at `page`.
    ///
    /// # Errors
    /// ENOMEM without memory; Unsupported on a kernel without flags in its rings (before Linux
    /// 5.4).
    pub(super) fn of(
        socket: BorrowedFd<'_>,
        page: u64,
        offsets: &XdpRingOffset,
        count: u32,
    ) -> io::Result<Self> {
        let flags = offsets.flags.ok_or(io::ErrorKind::Unsupported)? as usize;
        let (written, read, first) =
            (offsets.producer as usize, offsets.consumer as usize, offsets.desc as usize);
        let bytes = first + count as usize * size_of::<T>();
        let (protection, sharing) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::POPULATE);
        // SAFETY: the kernel chooses a range that nothing else uses, so no memory of this process
        // changes.
        let start = unsafe { mmap(ptr::null_mut(), bytes, protection, sharing, socket, page)? };
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the kernel says where these lie in the mapping it has just made, each aligned as
        // its type.
        let (written, read, flags, entries) = unsafe {
            (
                start.add(written).cast(),
                start.add(read).cast(),
                start.add(flags).cast(),
                start.add(first).cast(),
            )
        };
        Ok(Self { start, bytes, written, read, flags, entries, count, own: 0 })
    }

    /// True if the other end sleeps until it is woken by a system call.
    pub(super) fn sleeps(&self) -> bool {
        const XDP_RING_NEED_WAKEUP: u32 = 1;
        counter(&self.flags).load(Ordering::Relaxed) & XDP_RING_NEED_WAKEUP != 0
    }

    /// Writes an entry into a ring that this process writes and that has space.
    pub(super) fn put(&mut self, entry: T) {
        self.set(self.own, entry);
        self.own = self.own.wrapping_add(1);
        // Release: the entry, and the frame it is for, are written before they are counted.
        counter(&self.written).store(self.own, Ordering::Release);
    }

    /// Takes the last entry back from a ring that this process writes, and that the kernel has not
    /// read since.
    pub(super) fn withdraw(&mut self) {
        self.own = self.own.wrapping_sub(1);
        counter(&self.written).store(self.own, Ordering::Release);
    }

    /// The next entry of a ring that is ours to read.
    pub(super) fn next(&self) -> Option<T> {
        // Acquire: the kernel writes the entry, and the frame it is for, before it counts them.
        let written = counter(&self.written).load(Ordering::Acquire);
        (written != self.own).then(|| self.get(self.own))
    }

    /// Has read the entry that [`Ring::next`] returned.
    pub(super) fn pass(&mut self) {
        self.own = self.own.wrapping_add(1);
        // Release: the entry is read before the kernel may write the next one there.
        counter(&self.read).store(self.own, Ordering::Release);
    }

    fn get(&self, number: u32) -> T {
        // SAFETY: the number of an entry modulo the count lies in the mapping, and any bytes are a
        // T of integers.
        unsafe { self.entries.add((number & (self.count - 1)) as usize).read() }
    }

    fn set(&mut self, number: u32, entry: T) {
        // SAFETY: as in `get`; it is ours to write until it is counted.
        unsafe { self.entries.add((number & (self.count - 1)) as usize).write(entry) };
    }
}

fn counter(place: &NonNull<AtomicU32>) -> &AtomicU32 {
    // SAFETY: it lies in the mapping, aligned, as long as the ring that `place` is a field of, and
    // is changed on both sides as an atomic is.
    unsafe { place.as_ref() }
}

impl<T: Copy> Drop for Ring<T> {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `of`, and no reference into it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: the mapping is memory of the whole process, and all writes to it need the ring
// exclusively.
unsafe impl<T: Copy + Send> Send for Ring<T> {}
// SAFETY: a shared reference only allows loads, of memory that only the kernel writes meanwhile.
unsafe impl<T: Copy + Sync> Sync for Ring<T> {}

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
