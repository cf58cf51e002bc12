//! Succession of lease holders over any kind of memory, lock-free: the only part of the command
//! path the cycle trusts.
//!
//! Each holder writes into a separate cell. The server ends a lease by noting the number of its
//! last command; commands with later numbers are ignored, however fast they are written, and after
//! its last command the cell is not read any more. A lease is granted only when the former one has
//! ended, so the cycle moves to the next holder, or to none, without a notification.
//!
//! Its models are in `tests/loom.rs`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Consumer, Producer, RingBuffer};

use super::Read;
use crate::cell::{Found, Reader, Word, Words};

/// Creates the server's end and the cycle's end.
#[must_use]
pub fn pair<M: Words>() -> (Leases<M>, Hearing<M>) {
    let (granted, fresh) = RingBuffer::new(WAITING);
    let (retired, back) = RingBuffer::new(WAITING);
    let hearing = Hearing { current: None, fresh, retired, seen: 0, taken: false, holders: 0 };
    (Leases { granted, back, held: None, out: 0 }, hearing)
}

/// Lease of one holder.
struct Lease<M: Words> {
    cell: Reader<M>,
    /// 0 while the lease is held; afterwards one more than the number of the last valid command.
    over: M::Word,
}

impl<M: Words> Lease<M> {
    /// Number of the last valid command, once the lease has ended.
    fn last(&self) -> Option<u64> {
        // Partner: the Release store in `end`. A lease granted after it is visible, too.
        let over = self.over.load(Ordering::Acquire);
        (over != 0).then(|| over.wrapping_sub(1))
    }

    fn end(&self) {
        let last = self.cell.newest().wrapping_add(1).max(1);
        // Partner: the Acquire load in `last`.
        self.over.store(last, Ordering::Release);
    }

    /// Reads the newest command, unless it was read already or came after the end.
    #[inline]
    fn read(&self, seen: u64, copy: &mut [u64]) -> Found {
        if self.cell.newest() == seen {
            return Found::Nothing;
        }
        let found = self.cell.read(copy, ATTEMPTS);
        // Checked after the copy: the lease may have ended meanwhile.
        match (found, self.last()) {
            (Found::Whole(number) | Found::Torn(number), Some(last)) if number != last => Found::Nothing,
            _ => found,
        }
    }
}

/// The server's end.
pub struct Leases<M: Words> {
    granted: Producer<Arc<Lease<M>>>,
    back: Consumer<Arc<Lease<M>>>,
    held: Option<Arc<Lease<M>>>,
    /// Leases that the cycle has not given back yet.
    out: usize,
}

impl<M: Words> Leases<M> {
    /// True if the cycle has looked often enough for another lease.
    pub fn has_room(&mut self) -> bool {
        self.collect();
        self.out < WAITING
    }

    /// Ends the current lease and grants the next one over this memory; `over` must be a word at 0.
    /// False without space.
    pub fn grant(&mut self, cell: Reader<M>, over: M::Word) -> bool {
        self.end();
        if !self.has_room() {
            return false;
        }
        let lease = Arc::new(Lease { cell, over });
        // Both rings, there and back, have space for as many as are out.
        let pushed = self.granted.push(Arc::clone(&lease)).is_ok();
        if pushed {
            self.out += 1;
            self.held = Some(lease);
        }
        pushed
    }

    /// Ends the current lease: commands that its holder has not written yet are ignored.
    pub fn end(&mut self) {
        if let Some(lease) = self.held.take() {
            lease.end();
        }
    }

    /// Frees the memory that the cycle gave back.
    pub fn collect(&mut self) {
        while self.back.pop().is_ok() {
            self.out -= 1;
        }
    }
}

/// The cycle's end.
pub struct Hearing<M: Words> {
    current: Option<Arc<Lease<M>>>,
    fresh: Consumer<Arc<Lease<M>>>,
    retired: Producer<Arc<Lease<M>>>,
    /// Number of the last publication of the current lease that was read.
    seen: u64,
    taken: bool,
    /// Leases taken up so far.
    holders: u64,
}

impl<M: Words> Hearing<M> {
    /// Reads the newest command if it is newer than the last one. `copy` has space for one command;
    /// `take` returns true if its words are a valid one.
    ///
    /// Never waits, makes no system call, allocates nothing and frees nothing.
    #[inline]
    pub fn newest(&mut self, copy: &mut [u64], mut take: impl FnMut(&[u64]) -> bool) -> Read {
        let mut heard = None;
        // At most as many leases as can have followed each other since the last look.
        for _ in 0..=WAITING {
            if self.current.is_none() {
                let Ok(next) = self.fresh.pop() else { break };
                (self.current, self.seen) = (Some(next), 0);
                self.holders += 1;
            }
            let Some(lease) = &self.current else { break };
            let is_over = lease.last().is_some();
            match lease.read(self.seen, copy) {
                Found::Nothing => {}
                Found::Whole(number) if take(copy) => {
                    (self.seen, self.taken, heard) = (number, true, Some(Read::New));
                }
                Found::Whole(number) | Found::Torn(number) => {
                    self.seen = number;
                    heard = heard.or(Some(Read::Torn));
                }
            }
            if !is_over {
                break;
            }
            if let Some(over) = self.current.take() {
                // The ring has space for all leases that are out; the server frees them.
                let _ = self.retired.push(over);
            }
        }
        heard.unwrap_or(if self.taken { Read::Same } else { Read::Nothing })
    }
}

impl<M: Words> Hearing<M> {
    /// Memory of the current lease, as of the last look; none while it is free.
    pub fn current(&self) -> Option<&M> {
        self.current.as_ref().map(|lease| lease.cell.memory())
    }

    /// Number of the current holder, as of the last look; none while it is free.
    pub fn holder(&self) -> Option<u64> {
        self.current.is_some().then_some(self.holders)
    }

    /// Number of the last publication of the current lease that was read.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }
}

impl<M: Words> std::fmt::Debug for Leases<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leases").field("out", &self.out).finish_non_exhaustive()
    }
}

impl<M: Words> std::fmt::Debug for Hearing<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing").field("seen", &self.seen).finish_non_exhaustive()
    }
}

/// Attempts of one poll: the writer laps a reader only with three commands during one copy.
const ATTEMPTS: u32 = 4;

/// Holders that may follow each other before the cycle has looked once.
const WAITING: usize = 64;

#[cfg(test)]
mod tests;
