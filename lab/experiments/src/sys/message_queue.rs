//! POSIX semaphores, and an unnamed POSIX message queue (mq_overview(7)) over `nix`, which leaves
//! closing to its users.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{io, process};

use nix::mqueue::{MQ_OFlag, MqAttr, MqdT, mq_close, mq_open, mq_receive, mq_send, mq_unlink};
use nix::sys::stat::Mode;

/// Queue of one message, private to this process.
pub(crate) struct MessageQueue {
    /// Descriptor; `None` once closed.
    descriptor: Option<MqdT>,
}

impl MessageQueue {
    /// Creates a queue for messages of `size` bytes. Its name is removed at once, so that nothing
    /// remains of it in any case.
    ///
    /// # Errors
    /// EMFILE past the user's `ulimit -q`; ENOSYS on a kernel without message queues.
    pub(crate) fn new(size: usize) -> io::Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only uniqueness counts.
        let name = format!("/onbeat-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let size = size.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = MQ_OFlag::O_RDWR | MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_CLOEXEC;
        let attributes = MqAttr::new(0, 1, size, 0);
        let descriptor = mq_open(name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR, Some(&attributes))?;
        let queue = Self { descriptor: Some(descriptor) };
        mq_unlink(name.as_str())?;
        Ok(queue)
    }

    /// Sends a message, and sleeps while the queue is full. A signal does not interrupt it.
    ///
    /// # Errors
    /// EMSGSIZE for a message that is too long.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        self.with(|queue| mq_send(queue, message, 0))
    }

    /// Receives a message, and sleeps while there is none. A signal does not interrupt it.
    ///
    /// # Errors
    /// EMSGSIZE for a buffer shorter than the queue's messages.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        self.with(|queue| mq_receive(queue, buffer, &mut 0).map(drop))
    }

    fn with(&self, mut work: impl FnMut(&MqdT) -> nix::Result<()>) -> io::Result<()> {
        let queue = self.descriptor.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        loop {
            match work(queue) {
                Err(nix::Error::EINTR) => {}
                other => return Ok(other?),
            }
        }
    }
}

impl Drop for MessageQueue {
    fn drop(&mut self) {
        // Closing an open descriptor cannot fail.
        let _ = self.descriptor.take().map(mq_close);
    }
}

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
    fn what_is_sent_is_received() {
        let queue = MessageQueue::new(8).unwrap();
        for number in 0..50_u64 {
            queue.send(&number.to_ne_bytes()).unwrap();
            let mut message = [0; 8];
            queue.receive(&mut message).unwrap();
            assert_eq!(u64::from_ne_bytes(message), number);
        }
        assert_eq!(queue.send(&[0; 9]).unwrap_err().raw_os_error(), Some(libc::EMSGSIZE));
    }

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
