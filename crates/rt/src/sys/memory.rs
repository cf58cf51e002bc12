//! Memory that is there before the cycle starts: no page fault on the real-time path.

use std::hint;
use std::io;
use std::mem;
use std::ptr;

use rustix::mm::{MlockAllFlags, mlockall, munlockall};
use rustix::process::{Resource, getrlimit};

/// Locks every present and future page of the process into memory (`mlockall`).
///
/// # Errors
/// The operating system's error: EPERM without the privilege, ENOMEM past `RLIMIT_MEMLOCK`.
pub(crate) fn lock_all() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

/// Ends [`lock_all`].
///
/// # Errors
/// None that is known.
pub(crate) fn unlock_all() -> io::Result<()> {
    Ok(munlockall()?)
}

/// The memory-lock limit of this process in bytes, or `None` if there is none.
pub(crate) fn lock_limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Touches the next `bytes` of this thread's stack, in pages, so that they are mapped. It stops at
/// the end of the stack, less the need of this function and of a signal.
pub(crate) fn prefault_stack(bytes: usize) {
    const STEP: usize = 4 * 4096;
    /// Frames below the last block, and a handler of a signal, still have this much.
    const SPARE: usize = 48 * 1024;
    #[inline(never)]
    fn descend(until: usize) {
        let mut block = [0_u8; STEP];
        for page in block.chunks_mut(4096) {
            page[0] = 1;
        }
        let here = hint::black_box(&mut block).as_ptr().addr();
        if here > until {
            descend(until);
        }
        // The block is in use until here: the call above is none at the end of a function.
        hint::black_box(&mut block);
    }
    let here = hint::black_box(&bytes) as *const usize;
    let until = here.addr().saturating_sub(bytes);
    // A stack of unknown extent counts as the smallest one in use.
    let lowest = stack_end().unwrap_or_else(|| here.addr().saturating_sub(512 * 1024));
    let until = until.max(lowest.saturating_add(SPARE));
    if here.addr() > until {
        descend(until);
    }
}

/// The lowest address of this thread's stack.
fn stack_end() -> Option<usize> {
    // SAFETY: an all-zero pthread_attr_t holds integers and null pointers only, and is written
    // before it is read.
    let mut attributes: libc::pthread_attr_t = unsafe { mem::zeroed() };
    // SAFETY: names the calling thread; `attributes` is valid to write to.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) } != 0 {
        return None;
    }
    let (mut lowest, mut size) = (ptr::null_mut(), 0);
    // SAFETY: the call above filled `attributes`; both others are valid to write to. They are
    // destroyed once, here.
    let result = unsafe {
        let result = libc::pthread_attr_getstack(&attributes, &mut lowest, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        result
    };
    (result == 0).then(|| lowest.addr())
}

/// Makes `bytes` of heap resident and has the allocator keep them: it neither trims freed memory
/// nor maps large blocks separately.
pub(crate) fn prefault_heap(bytes: usize) {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets two parameters of the allocator, under its own lock; -1 and 0 are the documented
    // values for "never trim" and "never use a separate mapping for a block".
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
    let mut block = vec![0_u8; bytes];
    for page in block.chunks_mut(4096) {
        page[0] = 1;
    }
    hint::black_box(block);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request beyond the stack's end: it stops before the guard page, where a process would be
    /// killed.
    #[test]
    fn a_stack_is_touched_to_its_end_and_not_beyond() {
        for size in [128, 256, 4096] {
            let thread = std::thread::Builder::new().stack_size(size * 1024);
            let touched = move || {
                let end = stack_end().unwrap();
                let here = (&raw const end).addr();
                assert!(here > end && here - end <= size * 1024 + 4096, "{here:#x} {end:#x}");
                prefault_stack(usize::MAX);
                prefault_stack(0);
            };
            thread.spawn(touched).unwrap().join().unwrap();
        }
    }
}
