//! A value behind a mutex; and POSIX mutexes, plain or with priority inheritance: the holder then
//! runs at the priority of the highest waiter (`PTHREAD_PRIO_INHERIT`,
//! pthread_mutexattr_setprotocol(3)).

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;

/// POSIX mutex that protects no data.
pub(crate) struct PosixMutex {
    /// Boxed: the kernel and the C library use its address.
    inner: Box<UnsafeCell<libc::pthread_mutex_t>>,
}

// SAFETY: a mutex is made for use from several threads at once; all access goes through its
// functions.
unsafe impl Send for PosixMutex {}
// SAFETY: as above.
unsafe impl Sync for PosixMutex {}

/// Priority protocol of a mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Protocol {
    /// No protocol.
    Plain,
    /// The holder inherits the priority of the waiters.
    Inherit,
}

impl PosixMutex {
    /// Creates an unlocked mutex.
    ///
    /// # Errors
    /// ENOTSUP if the system has no priority inheritance.
    pub(crate) fn new(protocol: Protocol) -> io::Result<Self> {
        Self::of(protocol, libc::PTHREAD_PROCESS_PRIVATE)
    }

    /// Creates an unlocked mutex with `PTHREAD_PROCESS_SHARED`: slower, because the kernel looks up
    /// the owner of its memory.
    ///
    /// # Errors
    /// The errors of [`PosixMutex::new`].
    pub(crate) fn shared(protocol: Protocol) -> io::Result<Self> {
        Self::of(protocol, libc::PTHREAD_PROCESS_SHARED)
    }

    fn of(protocol: Protocol, shared: libc::c_int) -> io::Result<Self> {
        let protocol = match protocol {
            Protocol::Plain => libc::PTHREAD_PRIO_NONE,
            Protocol::Inherit => libc::PTHREAD_PRIO_INHERIT,
        };
        // SAFETY: both are memory for the init functions to fill; they hold integers only.
        let (inner, mut attributes): (_, libc::pthread_mutexattr_t) =
            unsafe { (Box::new(UnsafeCell::new(std::mem::zeroed())), std::mem::zeroed()) };
        // SAFETY: `attributes` is live and ours, initialised by the first call before the others
        // read it, and destroyed exactly once; the mutex is not yet shared.
        unsafe {
            check(libc::pthread_mutexattr_init(&mut attributes))?;
            let made = check(libc::pthread_mutexattr_setprotocol(&mut attributes, protocol))
                .and_then(|()| check(libc::pthread_mutexattr_setpshared(&mut attributes, shared)))
                .and_then(|()| check(libc::pthread_mutex_init(inner.get(), &attributes)));
            libc::pthread_mutexattr_destroy(&mut attributes);
            made?;
        }
        Ok(Self { inner })
    }

    /// Waits for the mutex and holds it until the guard is dropped, on the same thread.
    ///
    /// # Errors
    /// The operating system's error: EDEADLK if the kernel detects a cycle of waiters.
    pub(crate) fn lock(&self) -> io::Result<Held<'_>> {
        // SAFETY: the mutex was initialised and lives as long as `self`. Locking it twice on one
        // thread blocks for ever or is refused; it is not undefined for the default kind.
        check(unsafe { libc::pthread_mutex_lock(self.inner.get()) })?;
        Ok(Held { mutex: self, stays_on_its_thread: PhantomData })
    }
}

impl Drop for PosixMutex {
    fn drop(&mut self) {
        // SAFETY: initialised, and not locked: a guard borrows it. (A guard that was forgotten
        // makes this fail with EBUSY, which is harmless.)
        unsafe { libc::pthread_mutex_destroy(self.inner.get()) };
    }
}

/// Guard of a mutex held by this thread; dropping it unlocks the mutex.
pub(crate) struct Held<'a> {
    mutex: &'a PosixMutex,
    /// Only the thread that locked a mutex may unlock it: not `Send`.
    stays_on_its_thread: PhantomData<*const ()>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread locked it, for guards cannot change threads, and unlocks it once.
        unsafe { libc::pthread_mutex_unlock(self.mutex.inner.get()) };
    }
}

/// Converts a result: these functions return the error instead of setting `errno`.
fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

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
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A read-modify-write in two steps loses counts unless one thread at a time does it.
    #[test]
    fn one_thread_at_a_time_holds_it() {
        for protocol in [Protocol::Plain, Protocol::Inherit] {
            let mutex = PosixMutex::new(protocol).unwrap();
            assert_eq!(counted(&mutex), 8_000, "{protocol:?}");
        }
    }

    fn counted(mutex: &PosixMutex) -> u64 {
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = mutex.lock().unwrap();
                        let before = count.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        count.store(before + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        count.load(Ordering::Relaxed)
    }

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
