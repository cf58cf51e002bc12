//! Allocator that reports its calls.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, which calls this function before every allocation, reallocation and
/// release.
///
/// The function runs inside the allocator: it allocates nothing, and uses no thread-local that
/// needs a destructor.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use testkit::CountingAllocator;
///
/// static CALLS: AtomicU64 = AtomicU64::new(0);
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator =
///     CountingAllocator(|| drop(CALLS.fetch_add(1, Ordering::Relaxed)));
///
/// let before = CALLS.load(Ordering::Relaxed);
/// drop(std::hint::black_box(Box::new(7)));
/// assert!(CALLS.load(Ordering::Relaxed) >= before + 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountingAllocator(pub fn());

// SAFETY: every call goes to the system's allocator unchanged, after a function that does not
// allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        (self.0)();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, size) }
    }
}
