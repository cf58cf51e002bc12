//! POSIX semaphores within a process (`sem_t`, sem_overview(7)).

use std::cell::UnsafeCell;
use std::io;

/// Counting semaphore with the initial value zero.
pub(crate) struct Semaphore {
    /// Boxed: the C library may use its address.
    inner: Box<UnsafeCell<libc::sem_t>>,
}

// SAFETY: a semaphore is made for use from several threads at once; all access goes through its
// functions.
unsafe impl Send for Semaphore {}
// SAFETY: as above.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// Creates a semaphore at zero.
    ///
    /// # Errors
    /// The operating system's error; glibc and musl never refuse.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: an all-zero sem_t is memory for `sem_init` to fill; it holds integers only.
        let inner = Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() }));
        // SAFETY: the pointer is to a live sem_t that is not shared yet; 0: shared by threads only.
        check(unsafe { libc::sem_init(inner.get(), 0, 0) })?;
        Ok(Self { inner })
    }

    /// Adds one, and wakes a waiter if there is one.
    ///
    /// # Errors
    /// EOVERFLOW at its highest value.
    pub(crate) fn post(&self) -> io::Result<()> {
        // SAFETY: the semaphore was initialised and lives as long as `self`.
        check(unsafe { libc::sem_post(self.inner.get()) })
    }

    /// Takes one, and sleeps until there is one. A signal does not interrupt it.
    ///
    /// # Errors
    /// The operating system's error, other than EINTR.
    pub(crate) fn wait(&self) -> io::Result<()> {
        loop {
            // SAFETY: the semaphore was initialised and lives as long as `self`.
            match check(unsafe { libc::sem_wait(self.inner.get()) }) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: initialised, and no thread can wait on it: waiting borrows it.
        unsafe { libc::sem_destroy(self.inner.get()) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_posted_is_taken_once() {
        let (there, back) = (Semaphore::new().unwrap(), Semaphore::new().unwrap());
        let mut turns = 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..100 {
                    there.wait().unwrap();
                    back.post().unwrap();
                }
            });
            for _ in 0..100 {
                there.post().unwrap();
                back.wait().unwrap();
                turns += 1;
            }
        });
        assert_eq!(turns, 100);
    }
}
