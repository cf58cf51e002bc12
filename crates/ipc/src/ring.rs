//! Bounded ring from one thread to another within a process: it never waits, and drops and counts
//! items without space.
//!
//! ```
//! let (mut sender, mut receiver) = onbeat_ipc::ring::bounded(2);
//! for number in 0..3 {
//!     sender.send(number);
//! }
//! assert_eq!((receiver.next(), receiver.next(), receiver.next()), (Some(0), Some(1), None));
//! assert_eq!(receiver.dropped(), 1);
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

/// Creates both ends of a ring with space for this many items.
#[must_use]
pub fn bounded<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let (ring, out) = RingBuffer::new(room);
    let dropped = Arc::new(AtomicU64::new(0));
    (Sender { ring, dropped: Arc::clone(&dropped) }, Receiver { ring: out, dropped })
}

/// Sending end.
#[derive(Debug)]
pub struct Sender<T> {
    ring: Producer<T>,
    dropped: Arc<AtomicU64>,
}

impl<T> Sender<T> {
    /// Number of free slots.
    #[must_use]
    pub fn room(&self) -> usize {
        self.ring.slots()
    }

    /// Sends an item, or drops and counts it. Never waits, makes no system call and allocates
    /// nothing.
    pub fn send(&mut self, item: T) {
        if self.ring.push(item).is_err() {
            // Relaxed: a plain count; no other data depends on it.
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Receiving end.
#[derive(Debug)]
pub struct Receiver<T> {
    ring: Consumer<T>,
    dropped: Arc<AtomicU64>,
}

impl<T> Receiver<T> {
    /// Items dropped because the receiver did not take others out in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// True if the sender is gone: no further item will follow the items in the ring.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ring.is_abandoned()
    }
}

/// Items, the oldest first; `None` if there is none at the moment, though others may follow.
impl<T> Iterator for Receiver<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.ring.pop().ok()
    }
}
