//! Traffic counters of a port, each kept by the thread that moves the data.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use serde::{Deserialize, Serialize};

use crate::sys::futex;
use crate::sys::now_ns;

/// Traffic of a port so far, in messages, or in bytes for a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCounters {
    /// Name of the port.
    pub name: String,
    /// True once the real-time thread has bound it.
    pub bound: bool,
    /// True while a client has it open.
    pub open: bool,
    /// Times it was opened.
    pub opened: u64,
    /// Put into the ring by the real-time thread.
    pub sent: u64,
    /// Refused to the real-time thread: the ring was full, or the message too long or empty.
    pub refused: u64,
    /// System calls by which the real-time thread woke the server ([`super::Wake::Event`]).
    #[serde(default)]
    pub woken: u64,
    /// Moved by the server from the ring to the client's socket.
    pub delivered: u64,
    /// Written by the client and put into the ring by the server.
    pub written: u64,
    /// Taken out of the ring by the real-time thread.
    pub received: u64,
    /// Written by the client and dropped by the server: a message that was too long, or data of a
    /// former client that was left in the full ring when the next client came.
    pub dropped: u64,
}

/// The counters in memory; each is written by one thread only.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(super) bound: AtomicBool,
    pub(super) open: AtomicBool,
    pub(super) opened: AtomicU64,
    /// User and process that have opened it last.
    pub(super) client: AtomicU64,
    pub(super) sent: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) woken: AtomicU64,
    pub(super) delivered: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) dropped: AtomicU64,
    /// The real-time thread waits for more to be written.
    waits: AtomicBool,
}

impl Counters {
    /// Sleeps until more is written or `until_ns` of CLOCK_MONOTONIC, as long as nothing is
    /// `there`; for the real-time thread.
    pub(super) fn wait(&self, until_ns: u64, there: impl Fn() -> bool) {
        while !there() && now_ns() < until_ns {
            self.waits.store(true, Ordering::Relaxed);
            // Partner: the fence in `written`. The count is read before the ring: a later one ends
            // the sleep.
            fence(Ordering::SeqCst);
            let seen = self.written.load(Ordering::Relaxed);
            if !there() {
                futex::wait(&self.written, seen, until_ns);
            }
        }
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Counts data put into the ring before, and wakes the real-time thread if it waits; for the
    /// server.
    pub(super) fn written(&self, count: usize) {
        add(&self.written, count);
        // Partner: the fence in `wait`.
        fence(Ordering::SeqCst);
        if self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::Relaxed) {
            futex::wake(&self.written);
        }
    }

    pub(crate) fn read(&self, name: &str) -> PortCounters {
        // Relaxed: plain counts; no other data depends on them.
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PortCounters {
            name: name.to_owned(),
            bound: self.bound.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            opened: count(&self.opened),
            sent: count(&self.sent),
            refused: count(&self.refused),
            woken: count(&self.woken),
            delivered: count(&self.delivered),
            written: count(&self.written),
            received: count(&self.received),
            dropped: count(&self.dropped),
        }
    }
}

/// Adds to a counter that only the calling thread writes.
pub(super) fn add(counter: &AtomicU64, count: usize) {
    // Release: a reader that sees the count of sent bytes finds them in the ring. No other data
    // depends on a count.
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(count as u64), Ordering::Release);
}
