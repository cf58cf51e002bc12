//! The real-time end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Consumer, Producer};

use super::counters::{Counters, add};
use super::{Kind, record};

/// The real-time end of a port: two rings. No method waits, makes a system call or allocates.
#[derive(Debug)]
pub struct Port {
    name: Box<str>,
    kind: Kind,
    out: Producer<u8>,
    back: Consumer<u8>,
    counters: Arc<Counters>,
}

/// What was to be sent found no room, and was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{length} bytes found no room: the client of the port does not read, or there is none; or they never fit"
)]
pub struct Full {
    /// Bytes that were to be sent.
    pub length: usize,
}

impl Port {
    pub(super) fn new(
        name: &str,
        kind: Kind,
        out: Producer<u8>,
        back: Consumer<u8>,
        counters: Arc<Counters>,
    ) -> Self {
        Self { name: name.into(), kind, out, back, counters }
    }

    /// Says that the real-time thread is there: clients may open the port from now on.
    pub fn bind(&mut self) {
        // Relaxed: the flag carries nothing but itself; what passes is ordered by the rings.
        self.counters.bound.store(true, Ordering::Relaxed);
    }

    /// Puts a message, or bytes of a stream, on the way: whole or not at all.
    ///
    /// # Errors
    /// There is no room, or a message is empty or longer than the port's size: refused and counted.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Full> {
        let (done, count) = match self.kind {
            Kind::Message { size, .. } => {
                let fits = (1..=size).contains(&bytes.len());
                (fits && record::put(&mut self.out, size, bytes), 1)
            }
            Kind::Stream { .. } => (self.out.push_entire_slice(bytes).is_ok(), bytes.len()),
        };
        if done {
            add(&self.counters.sent, count);
            Ok(())
        } else {
            add(&self.counters.refused, count);
            Err(Full { length: bytes.len() })
        }
    }

    /// Takes the oldest message, cut to the buffer, or as many bytes of a stream as are there and find room; `None` where
    /// there is nothing.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        let (length, count) = match self.kind {
            Kind::Message { size, .. } => (record::take(&mut self.back, size, buffer, |_| true)?, 1),
            Kind::Stream { .. } => {
                let (taken, _) = self.back.pop_partial_slice(buffer);
                let length = taken.len();
                (length, length)
            }
        };
        add(&self.counters.received, count);
        (length > 0).then_some(length)
    }

    /// Whether somebody has it open now, as far as the door knows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.counters.open.load(Ordering::Relaxed)
    }

    /// How often it was opened so far. What the client before wrote may still be on its way.
    #[must_use]
    pub fn times_opened(&self) -> u64 {
        self.counters.opened.load(Ordering::Relaxed)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it carries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
