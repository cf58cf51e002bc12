//! Memory of a file as atomic words, shared with every process that maps it.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mlock, mmap, munmap};

/// Words of a file, mapped during the lifetime of this value.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

/// Use of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Loads by [`super::word::load`] only: a store would end the process, and another load may
    /// contain one.
    Load,
    /// Loads and stores.
    Store,
}

impl Mapping {
    /// Maps the first `words` words of a file that has at least as many and cannot shrink. The
    /// caller ensures both; otherwise an access may end the process with SIGBUS.
    ///
    /// The pages are present when this returns, and locked if the process may lock them: no access
    /// faults.
    pub(crate) fn of(file: BorrowedFd<'_>, words: usize, purpose: Use) -> io::Result<Self> {
        let protection = match purpose {
            Use::Load => ProtFlags::READ,
            Use::Store => ProtFlags::READ | ProtFlags::WRITE,
        };
        let bytes = words
            .checked_mul(size_of::<u64>())
            .filter(|&bytes| bytes > 0 && isize::try_from(bytes).is_ok())
            .ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a range that nothing else uses, so no memory of this process
        // changes.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, protection, flags, file, 0)? };
        let start: NonNull<AtomicU64> = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: the range was mapped just now. If refused (RLIMIT_MEMLOCK) it stays as it is,
        // only easier to reclaim.
        let _ = unsafe { mlock(start.as_ptr().cast(), bytes) };
        Ok(Self { start, words })
    }

    /// All words. Words of a mapping for [`Use::Load`] must be loaded by [`super::word::load`]
    /// only.
    #[inline]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped until `self` is dropped, page-aligned and so aligned for
        // words, `words` long, and all its bit patterns are valid. All processes that share it
        // access it through atomics, this one by type; what another process does is to the hardware
        // an access like any other.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this range was mapped by `of`, and no slice of it outlives `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.words * size_of::<u64>()) };
    }
}

// SAFETY: a mapping is memory of the whole process and holds atomics only.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}
