//! Who asks the allocator for memory: for tests of code that must not.
//!
//! ```
//! use testbed::{CountingAllocator, allocations};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = allocations::COUNTED;
//!
//! assert_eq!(allocations::calls_of(|| drop(std::hint::black_box(Box::new(7)))), 2);
//! assert_eq!(allocations::calls_of(|| ()), 0);
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use rustix::thread::gettid;

use crate::CountingAllocator;

/// The allocator that counts what watched threads ask for and give back.
pub const COUNTED: CountingAllocator = CountingAllocator(count);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
    static OWN: Cell<u64> = const { Cell::new(0) };
}
/// Numbers of threads that do not watch themselves; 0 where there is none.
static THREADS: [AtomicI32; 16] = [const { AtomicI32::new(0) }; 16];
/// Whether there is one: looking costs a system call.
static ANY_THREADS: AtomicBool = AtomicBool::new(false);
static EVERYBODY: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Runs inside the allocator. Relaxed throughout: a number is all there is, and who reads it knows that the work is over.
fn count() {
    let everybody = EVERYBODY.load(Ordering::Relaxed) && !EXEMPT.get();
    if WATCHED.get() || everybody || is_watched_by_number() {
        OWN.set(OWN.get() + 1);
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

fn is_watched_by_number() -> bool {
    ANY_THREADS.load(Ordering::Relaxed) && {
        let this = gettid().as_raw_nonzero().get();
        THREADS.iter().any(|thread| thread.load(Ordering::Relaxed) == this)
    }
}

/// Watches this thread from now on, or no longer.
pub fn watch(on: bool) {
    WATCHED.set(on);
}

/// Watches these threads of this process from now on, by the kernel's numbers, and those before no longer.
///
/// # Panics
/// There are more than sixteen.
pub fn watch_threads(numbers: &[i32]) {
    assert!(numbers.len() <= THREADS.len(), "at most {} threads", THREADS.len());
    let numbers = numbers.iter().copied().chain(std::iter::repeat(0));
    THREADS.iter().zip(numbers).for_each(|(thread, number)| thread.store(number, Ordering::Relaxed));
    ANY_THREADS.store(THREADS[0].load(Ordering::Relaxed) != 0, Ordering::Relaxed);
}

/// Watches all threads from now on but those that are [`exempt`], or no longer.
pub fn watch_everybody(on: bool) {
    EVERYBODY.store(on, Ordering::Relaxed);
}

/// This thread is not everybody.
pub fn exempt() {
    EXEMPT.set(true);
}

/// Calls of the allocator by watched threads so far.
#[must_use]
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Those by this thread.
#[must_use]
pub fn own_calls() -> u64 {
    OWN.get()
}

/// Does this watched.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
    watch(true);
    let done = work();
    watch(false);
    done
}

/// What this asks of the allocator.
pub fn calls_of(work: impl FnOnce()) -> u64 {
    let before = own_calls();
    watched(work);
    own_calls() - before
}
