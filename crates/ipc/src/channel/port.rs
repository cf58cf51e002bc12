//! The real-time end of a port.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rtrb::{Consumer, Producer};

use super::bell::Bell;
use super::counters::{Counters, add};
use super::{Kind, record};
use crate::force::Client;
use crate::sys::now_ns;

/// Real-time end of a port: two rings. No method allocates, waits but [`Port::wait`], or makes a
/// system call but that one and, of a port made with [`super::Wake::Event`], [`Port::send`].
#[derive(Debug)]
pub struct Port {
    name: Box<str>,
    kind: Kind,
    out: Producer<u8>,
    back: Consumer<u8>,
    /// Bell that a send rings.
    bell: Option<Arc<Bell>>,
    counters: Arc<Counters>,
}

/// The ring had no space for the bytes, which were refused and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{length} bytes do not fit: the port's client does not read, no client is connected, or the \
     message is longer than the port"
)]
pub struct Full {
    /// Number of bytes refused.
    pub length: usize,
}

impl Port {
    pub(super) fn new(
        name: &str,
        kind: Kind,
        (out, back): (Producer<u8>, Consumer<u8>),
        bell: Option<Arc<Bell>>,
        counters: Arc<Counters>,
    ) -> Self {
        Self { name: name.into(), kind, out, back, bell, counters }
    }

    /// Marks the real-time thread as present: from now on clients may open the port.
    pub fn bind(&mut self) {
        // Relaxed: the flag carries no other data; the rings order what passes through them.
        self.counters.bound.store(true, Ordering::Relaxed);
    }

    /// Queues a message, or bytes of a stream, for the client: whole or not at all.
    ///
    /// # Errors
    /// There is no space, or a message is empty or longer than the port's size; refused and
    /// counted.
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
            if let Some(bell) = &self.bell {
                // A port that is being opened at this moment is checked before the server sleeps.
                if self.is_open() && bell.ring() {
                    add(&self.counters.woken, 1);
                }
            }
            Ok(())
        } else {
            add(&self.counters.refused, count);
            Err(Full { length: bytes.len() })
        }
    }

    /// Takes the oldest message, cut to the buffer, or as many bytes of a stream as are there and
    /// fit; `None` if there is nothing.
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

    /// Sleeps until there is something to receive, for `longest` at most; true if there is. One
    /// system call or, with something there already, none. For a task that waits for its answer
    /// within its job: a cycle never does.
    pub fn wait(&self, longest: Duration) -> bool {
        let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        self.counters.wait(now_ns().saturating_add(longest), || !self.back.is_empty());
        !self.back.is_empty()
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

    /// Client that has opened the port last; `None` before the first. Data of the former client may
    /// still arrive.
    #[must_use]
    pub fn client(&self) -> Option<Client> {
        let bits = self.counters.client.load(Ordering::Acquire);
        (self.times_opened() > 0).then_some(Client { user: (bits >> 32) as u32, process: bits as u32 })
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
