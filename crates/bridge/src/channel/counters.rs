//! What passed a port, counted by whoever moves it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

/// What passed a port so far. Messages, or for a stream: bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Name of the port.
    pub name: String,
    /// The real-time thread has bound it.
    pub bound: bool,
    /// Somebody has it open.
    pub open: bool,
    /// Times it was opened.
    pub opened: u64,
    /// The real-time thread put into the ring.
    pub sent: u64,
    /// The real-time thread was refused: the ring was full, or the message too long or empty.
    pub refused: u64,
    /// The door took out of the ring and put into the client's socket.
    pub delivered: u64,
    /// The client wrote and the door put into the ring.
    pub written: u64,
    /// The real-time thread took out of the ring.
    pub received: u64,
    /// The client wrote and the door dropped: too long a message, or left behind by a client that is gone while the ring
    /// was full and the next client came.
    pub dropped: u64,
}

/// The same, where they are counted. Each is written by one thread.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) bound: AtomicBool,
    pub(super) open: AtomicBool,
    pub(super) opened: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) dropped: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self, name: &str) -> PortCounters {
        // Relaxed: counts, nothing hangs on them.
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PortCounters {
            name: name.to_owned(),
            bound: self.bound.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            opened: count(&self.opened),
            sent: count(&self.sent),
            refused: count(&self.refused),
            delivered: count(&self.delivered),
            written: count(&self.written),
            received: count(&self.received),
            dropped: count(&self.dropped),
        }
    }
}

/// Adds to a counter that only the calling thread writes.
pub(super) fn add(counter: &AtomicU64, count: usize) {
    // Relaxed: only this thread writes it, and nothing hangs on it.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count as u64), Ordering::Relaxed);
}
