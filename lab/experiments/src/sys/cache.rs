//! Value behind a POSIX mutex, as the humanoid's tasks share their state.

use std::cell::UnsafeCell;
use std::io;

use super::mutex::{PosixMutex, Protocol};

/// Value accessible to one thread at a time.
pub(crate) struct Cache<T> {
    mutex: PosixMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `with` only, which holds the mutex: one thread at a time. So
// it must be fit to be used from several threads one after the other: `T: Send`.
unsafe impl<T: Send> Sync for Cache<T> {}

impl<T> Cache<T> {
    /// Creates a cache of this value, behind a mutex that several processes could share.
    ///
    /// # Errors
    /// ENOTSUP if the system has no priority inheritance.
    pub(crate) fn new(protocol: Protocol, value: T) -> io::Result<Self> {
        Ok(Self { mutex: PosixMutex::shared(protocol)?, value: UnsafeCell::new(value) })
    }

    /// Locks the mutex, works on the value, and unlocks the mutex.
    ///
    /// # Errors
    /// The operating system's error: EDEADLK if the kernel detects a cycle of waiters.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> io::Result<R> {
        let _held = self.mutex.lock()?;
        // SAFETY: the mutex is held until `_held` is dropped, so no other thread has a reference;
        // this thread has none either, for `work` would have to be within `with`, and locking twice
        // never returns.
        Ok(work(unsafe { &mut *self.value.get() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_never_see_a_torn_write() {
        for protocol in [Protocol::Plain, Protocol::Inherit] {
            let cache = Cache::new(protocol, [0_u64; 64]).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            cache.with(|value| value.iter_mut().for_each(|it| *it += 1)).unwrap();
                        }
                    });
                }
                for _ in 0..500 {
                    let copy = cache.with(|value| *value).unwrap();
                    assert!(copy.iter().all(|&it| it == copy[0]), "{protocol:?}: {copy:?}");
                }
            });
            assert_eq!(cache.with(|value| value[0]).unwrap(), 1_000, "{protocol:?}");
        }
    }
}
