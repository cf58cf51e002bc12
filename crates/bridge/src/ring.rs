//! From one thread to another within a process: bounded, never waiting; what finds no room is dropped and counted.
//!
//! ```
//! let (mut sender, mut receiver) = onbeat_bridge::ring::bounded(2);
//! for number in 0..3 {
//!     sender.send(number);
//! }
//! assert_eq!((receiver.next(), receiver.next(), receiver.next()), (Some(0), Some(1), None));
//! assert_eq!(receiver.dropped(), 1);
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

/// Both ends of a ring with room for so many.
#[must_use]
pub fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let (ring, out) = RingBuffer::new(room);
    let dropped = Arc::new(AtomicU64::new(0));
    (Sender { ring, dropped: Arc::clone(&dropped) }, Receiver { ring: out, dropped })
}

/// The end that puts in.
#[derive(Debug)]
pub struct Sender<T> {
    ring: Producer<T>,
    dropped: Arc<AtomicU64>,
}

impl<T> Sender<T> {
    /// Puts one in, or drops and counts it. Never waits, makes no system call, and allocates nothing.
    pub fn send(&mut self, item: T) {
        if self.ring.push(item).is_err() {
            // Relaxed: a count, nothing hangs on it.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The end that takes out.
#[derive(Debug)]
pub struct Receiver<T> {
    ring: Consumer<T>,
    dropped: Arc<AtomicU64>,
}

impl<T> Receiver<T> {
    /// Those that were dropped because nobody took out in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Whether the other end is gone: nothing will come after what is still here.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ring.is_abandoned()
    }
}

/// The oldest first; `None` says that there is none now, not that none will come.
impl<T> Iterator for Receiver<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.ring.pop().ok()
    }
}
