//! A wakeup between two threads: one sleeps until the other rings.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

/// Wakes one sleeping thread. Ringing makes no system call while that thread is awake.
///
/// The sleeper announces itself, then looks for work once more; the ringer makes work visible, then
/// looks for a sleeper. A sequentially consistent fence between the two steps on each side makes
/// sure that at least one of them sees the other, so no ring is lost.
#[derive(Debug, Default)]
pub struct Doorbell {
    state: AtomicU32,
}

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

impl Doorbell {
    /// Sleeps until rung or until `timeout` passes, or not at all if `ready` reports work. It may
    /// wake up spuriously: callers check again.
    pub fn wait(&self, timeout: Duration, ready: impl FnOnce() -> bool) {
        self.state.store(ASLEEP, Ordering::Relaxed);
        // Partner: the fence in `ring`.
        fence(Ordering::SeqCst);
        if !ready() {
            // A time-out that does not fit exceeds the life of any machine.
            let timeout = Timespec::try_from(timeout).ok();
            // Any outcome (rung, timed out, interrupted, value already changed) is a permitted
            // wake-up.
            let _ = futex::wait(&self.state, Flags::PRIVATE, ASLEEP, timeout.as_ref());
        }
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Wakes the sleeper, if there is one. The work must be stored before.
    pub fn ring(&self) {
        // Partner: the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.state.load(Ordering::Relaxed) == ASLEEP
            && self.state.swap(AWAKE, Ordering::Relaxed) == ASLEEP
        {
            // It fails for no word that is there.
            let _ = futex::wake(&self.state, Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::time::Instant;

    #[test]
    fn no_ring_is_lost() {
        let bell = Arc::new(Doorbell::default());
        let work = Arc::new(AtomicU64::new(0));
        let worker = std::thread::spawn({
            let (bell, work) = (Arc::clone(&bell), Arc::clone(&work));
            move || {
                let mut seen = 0;
                let begin = Instant::now();
                while seen < 2_000 && begin.elapsed() < Duration::from_secs(20) {
                    bell.wait(Duration::from_secs(5), || work.load(Ordering::Acquire) > seen);
                    seen = work.load(Ordering::Acquire);
                }
                (seen, begin.elapsed())
            }
        });
        for _ in 0..2_000 {
            work.fetch_add(1, Ordering::Release);
            bell.ring();
        }
        let (seen, elapsed) = worker.join().unwrap();
        assert_eq!(seen, 2_000);
        assert!(elapsed < Duration::from_secs(5), "a ring was lost: woke by time-out after {elapsed:?}");
    }

    #[test]
    fn wait_without_ring_times_out() {
        let begin = Instant::now();
        Doorbell::default().wait(Duration::from_millis(3), || false);
        assert!(begin.elapsed() < Duration::from_secs(2));
    }
}
