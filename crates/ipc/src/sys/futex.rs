//! futex(2) on words that processes share: the low half of a 64-bit word, which only the kernel
//! reads.

use std::ptr;
use std::sync::atomic::AtomicU64;

use rustix::time::Timespec;

/// Sleeps while the low half of `word` is that of `seen`, until [`wake`] or `until_ns` of
/// CLOCK_MONOTONIC. It may return for no reason: callers look again.
pub(crate) fn wait(word: &AtomicU64, seen: u64, until_ns: u64) {
    let until = Timespec {
        tv_sec: i64::try_from(until_ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (until_ns % 1_000_000_000) as i64,
    };
    // SAFETY: the futex word is live and aligned for 32 bits, and the timespec outlives the call;
    // the kernel only reads both, so a mapping for loads will do. FUTEX_WAIT_BITSET takes an
    // absolute time of CLOCK_MONOTONIC. Any outcome (woken, timed out, interrupted, another value)
    // is a permitted return.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(word),
            libc::FUTEX_WAIT_BITSET,
            seen as u32,
            &raw const until,
            ptr::null::<u32>(),
            libc::FUTEX_BITSET_MATCH_ANY,
        )
    };
}

/// Wakes the one that sleeps on `word`, if any. Its new value must be stored before.
pub(crate) fn wake(word: &AtomicU64) {
    // SAFETY: the futex word is live and aligned for 32 bits; FUTEX_WAKE does not touch it.
    unsafe { libc::syscall(libc::SYS_futex, low_half(word), libc::FUTEX_WAKE, 1) };
}

/// Address of the low half, which changes with every step of a counter.
fn low_half(word: &AtomicU64) -> *const u32 {
    let halves = word.as_ptr().cast_const().cast::<u32>();
    if cfg!(target_endian = "little") { halves } else { halves.wrapping_add(1) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys::now_ns;

    #[test]
    fn a_wait_ends_with_another_value_a_wake_or_its_time() {
        let word = Arc::new(AtomicU64::new(7));
        wait(&word, 6, u64::MAX);
        let begin = Instant::now();
        wait(&word, 7, now_ns() + 20_000_000);
        assert!(begin.elapsed() >= Duration::from_millis(20));
        let other = Arc::clone(&word);
        let waker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            other.store(8, Ordering::Release);
            wake(&other);
        });
        while word.load(Ordering::Acquire) == 7 {
            wait(&word, 7, u64::MAX);
        }
        waker.join().unwrap();
    }
}
