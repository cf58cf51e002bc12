//! Memory that is there before the cycle starts: no page fault on the real-time path.

use std::io;

/// Locks every present and future page of the process into memory (`mlockall`).
///
/// # Errors
/// What the operating system says: EPERM without the privilege, ENOMEM past `RLIMIT_MEMLOCK`.
pub(crate) fn lock_all() -> io::Result<()> {
    // SAFETY: takes flags only; changes how pages are kept, not what they hold.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends [`lock_all`].
///
/// # Errors
/// None that is known.
pub(crate) fn unlock_all() -> io::Result<()> {
    // SAFETY: takes nothing; changes how pages are kept, not what they hold.
    match unsafe { libc::munlockall() } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The memory-lock limit of this process in bytes, or `None` if there is none.
pub(crate) fn lock_limit() -> Option<u64> {
    super::scheduling::soft_limit(libc::RLIMIT_MEMLOCK)
}

/// Touches the next `bytes` of this thread's stack, in pages, so that they are mapped. At most
/// 512 KiB: a quarter of the stack a Rust thread has.
pub(crate) fn prefault_stack(bytes: usize) {
    const STEP: usize = 16 * 1024;
    #[inline(never)]
    fn descend(steps: usize) -> u8 {
        let mut block = [0_u8; STEP];
        for page in block.chunks_mut(4096) {
            page[0] = steps as u8;
        }
        let block = std::hint::black_box(block);
        if steps == 0 { block[0] } else { descend(steps - 1).wrapping_add(block[STEP - 1]) }
    }
    // Two blocks a step: the array and what `black_box` returns.
    std::hint::black_box(descend(bytes.min(512 * 1024) / STEP / 2));
}

/// Makes `bytes` of heap resident and tells the allocator to keep them: freed memory is neither
/// trimmed nor are large blocks mapped anew.
pub(crate) fn prefault_heap(bytes: usize) {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two parameters of the allocator, under its own lock; -1 and 0 are the documented
    // values for "never trim" and "never map a block of its own".
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
    let mut block = vec![0_u8; bytes];
    for page in block.chunks_mut(4096) {
        page[0] = 1;
    }
    std::hint::black_box(block);
}
