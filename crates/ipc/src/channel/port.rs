//! The real-time end of a port.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Consumer, Producer};

use super::counters::{Counters, add};
use super::{Kind, record};

/// Real-time end of a port: two rings. No method waits, makes a system call or allocates.
#[derive(Debug)]
pub struct Port {
    name: Box<str>,
    kind: Kind,
    out: Producer<u8>,
    back: Consumer<u8>,
    counters: Arc<Counters>,
}

/// The ring had no room for the bytes, which were refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{length} bytes found no room: the client of the port does not read, or there is none; or they never fit"
)]
pub struct Full {
    /// Number of bytes refused.
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

    /// Marks the real-time thread as present: from now on clients may open the port.
    pub fn bind(&mut self) {
        // Relaxed: the flag carries no other data; the rings order what passes through them.
        self.counters.bound.store(true, Ordering::Relaxed);
    }

    /// Queues a message, or bytes of a stream, for the client: whole or not at all.
    ///
    /// # Errors
    /// There is no room, or a message is empty or longer than the port's size; refused and counted.
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

    /// Takes the oldest message, cut to the buffer, or as many bytes of a stream as are there and fit;
    /// `None` if there is nothing.
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

    /// True if a client has the port open now, as far as the server knows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.counters.open.load(Ordering::Relaxed)
    }

    /// Number of times the port was opened so far. Data of the former client may still arrive.
    #[must_use]
    pub fn times_opened(&self) -> u64 {
        self.counters.opened.load(Ordering::Relaxed)
    }

    /// Name of the port.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kind of data it carries.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}
