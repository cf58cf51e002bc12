//! Wakeup of the server by data from the real-time side, and of the real-time side by data from a
//! client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};

/// Bell at the server's thread.
///
/// The server announces that it sleeps, then polls once more; the sender makes data visible, then
/// checks for a sleeper. A sequentially consistent fence between the two steps on each side makes
/// sure that at least one of them sees the other.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    asleep: AtomicBool,
    /// Descriptor the server polls; none before it is there.
    event: OnceLock<OwnedFd>,
}

impl Bell {
    /// Makes the descriptor.
    pub(crate) fn hang(&self) -> io::Result<()> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // A second one is closed again.
        let _ = self.event.set(event);
        Ok(())
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.event.get().map(AsFd::as_fd)
    }

    /// The server is about to sleep; it polls once more after this.
    pub(crate) fn sleep(&self) {
        self.asleep.store(true, Ordering::Relaxed);
        // Partner: the fence in `ring`.
        fence(Ordering::SeqCst);
    }

    /// The server is awake; `rung` if its descriptor said so.
    pub(crate) fn awake(&self, rung: bool) {
        self.asleep.store(false, Ordering::Relaxed);
        if let (true, Some(event)) = (rung, self.event.get()) {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }

    /// Wakes the server if it sleeps; true if that took a system call. The data must be stored
    /// before.
    pub(crate) fn ring(&self) -> bool {
        // Partner: the fence in `sleep`.
        fence(Ordering::SeqCst);
        let sleeps = self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed);
        match self.event.get() {
            // It fails only when it was rung 2^64 times without an answer.
            Some(event) if sleeps => rustix::io::write(event, &1_u64.to_ne_bytes()).is_ok(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::time::Timespec;

    use super::*;

    #[test]
    fn no_wakeup_is_lost_and_an_awake_server_gets_none() {
        let bell = Arc::new(Bell::default());
        assert!(!bell.ring(), "there is no descriptor yet");
        bell.hang().unwrap();
        assert!(!bell.ring(), "the server is awake");
        let work = Arc::new(AtomicU64::new(0));
        let (theirs, rung) = (Arc::clone(&bell), Arc::clone(&work));
        let sleeper = std::thread::spawn(move || {
            let (mut seen, mut in_vain) = (0, 0);
            while seen < 2_000 && in_vain == 0 {
                theirs.sleep();
                let mut ready = 0;
                if rung.load(Ordering::Acquire) == seen {
                    let mut wait = [PollFd::from_borrowed_fd(theirs.descriptor().unwrap(), PollFlags::IN)];
                    ready = poll(&mut wait, Some(&Timespec { tv_sec: 20, tv_nsec: 0 })).unwrap();
                    in_vain += usize::from(ready == 0);
                }
                theirs.awake(ready > 0);
                seen = rung.load(Ordering::Acquire);
            }
            (seen, in_vain)
        });
        for _ in 0..2_000 {
            work.fetch_add(1, Ordering::Release);
            bell.ring();
        }
        assert_eq!(sleeper.join().unwrap(), (2_000, 0));
    }
}
