//! Counts of allocator calls by thread: for tests of code that must not allocate.
//!
//! ```
//! use testkit::{CountingAllocator, allocations};
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

/// The allocator that counts allocations and releases of watched threads.
pub const COUNTED: CountingAllocator = CountingAllocator(count);

thread_local! {
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    static EXEMPT: Cell<bool> = const { Cell::new(false) };
    static OWN: Cell<u64> = const { Cell::new(0) };
}
/// Ids of threads watched by [`watch_threads`]; 0 where there is none.
static THREADS: [AtomicI32; 16] = [const { AtomicI32::new(0) }; 16];
/// True if there is one: comparing ids costs a system call.
static ANY_THREADS: AtomicBool = AtomicBool::new(false);
static EVERYBODY: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Runs inside the allocator. Relaxed throughout: the counter publishes no other memory, and it is
/// read after the watched work has ended.
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

/// Starts or stops watching this thread.
pub fn watch(on: bool) {
    WATCHED.set(on);
}

/// Watches the threads of this process with these kernel ids, and no others.
///
/// # Panics
/// More than sixteen ids.
pub fn watch_threads(numbers: &[i32]) {
    assert!(numbers.len() <= THREADS.len(), "at most {} threads", THREADS.len());
    let numbers = numbers.iter().copied().chain(std::iter::repeat(0));
    THREADS.iter().zip(numbers).for_each(|(thread, number)| thread.store(number, Ordering::Relaxed));
    ANY_THREADS.store(THREADS[0].load(Ordering::Relaxed) != 0, Ordering::Relaxed);
}

/// Starts or stops watching all threads except [`exempt`] ones.
pub fn watch_everybody(on: bool) {
    EVERYBODY.store(on, Ordering::Relaxed);
}

/// Exempts this thread from [`watch_everybody`].
pub fn exempt() {
    EXEMPT.set(true);
}

/// Allocator calls by watched threads so far.
#[must_use]
pub fn calls() -> u64 {
    CALLS.load(Ordering::Relaxed)
}

/// Allocator calls by this thread so far.
#[must_use]
pub fn own_calls() -> u64 {
    OWN.get()
}

/// Runs `work` with this thread watched.
pub fn watched<T>(work: impl FnOnce() -> T) -> T {
    watch(true);
    let done = work();
    watch(false);
    done
}

/// Allocator calls by `work`.
pub fn calls_of(work: impl FnOnce()) -> u64 {
    let before = own_calls();
    watched(work);
    own_calls() - before
}
