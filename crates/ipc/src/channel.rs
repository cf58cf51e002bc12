//! Datagram channels, XDDP in the papers: named ports between a real-time thread and one client in
//! any process.
//!
//! | the papers' step | here, real-time side | here, the other side |
//! |---|---|---|
//! | create | [`crate::server::Builder::port`] | |
//! | bind | [`Port::bind`] | |
//! | send, receive | [`Port::send`], [`Port::receive`] | |
//! | open | | [`crate::client::Client::port`] |
//! | read, write, poll | | [`Channel`]: a file descriptor like any other |
//!
//! The real-time end is two rings in its own process: it makes no system call and never waits,
//! unless requested ([`Wake::Event`], [`Port::wait`]). The server copies between the rings and a
//! socket; the client has the socket's other end.
//!
//! * To the client: bytes sent while no client has the port open wait in the ring for the next one.
//!   When the ring is full, because there is no client or it does not read, `send` refuses and
//!   counts.
//! * From the client: when the ring is full the server leaves the rest in the socket, and when that
//!   is full too the client's write blocks or returns an error, as with any socket.
//! * One client at a time. Once it is gone, for whatever reason, the next one may open the port.
//!   Bytes it had written arrive; bytes it had not read yet are lost if they were in the socket,
//!   and wait if they were in the ring.

mod bell;
mod client;
mod counters;
pub(crate) mod far;
mod helper;
mod port;
mod record;

use std::sync::Arc;
use std::time::Duration;

use types::PortKind;

pub(crate) use bell::Bell;
pub use client::Channel;
pub(crate) use counters::Counters;
pub use counters::PortCounters;
pub(crate) use helper::Helper;
pub use port::{Full, Port};

/// Kind of data a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages, each delivered whole or not at all.
    Message {
        /// Longest message, 1 to 65 536 bytes.
        size: usize,
        /// Messages each ring holds, 1 to 4096; at most 16 MiB.
        depth: usize,
    },
    /// Bytes without message boundaries.
    Stream {
        /// Bytes each ring holds, 1 to 1 048 576.
        size: usize,
    },
}

/// Way in which the server learns of data from the real-time side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wake {
    /// The server polls, every [`crate::server::Builder::look`]. The real-time side makes no system
    /// call.
    #[default]
    Look,
    /// [`Port::send`] wakes it: one system call, none while it is awake or no client has the port
    /// open.
    Event,
    /// A thread of ordinary priority polls the ring while a client has the port open, and wakes the
    /// server. The real-time side makes no system call.
    Helper {
        /// Pause between two polls, the shortest of all ports; zero for none, which uses a whole
        /// CPU.
        every: Duration,
    },
}

impl Kind {
    /// Reason why no port of this kind can exist, if any.
    pub(crate) fn complaint(self) -> Option<&'static str> {
        match self {
            Self::Message { size, depth } => PortKind::Message.complaint(size, depth),
            Self::Stream { size } => PortKind::Stream.complaint(size, 1),
        }
    }

    /// Size of a ring, bytes.
    fn room(self) -> usize {
        match self {
            Self::Message { size, depth } => (record::HEADER + size) * depth,
            Self::Stream { size } => size,
        }
    }
}

/// Creates both sides of a port.
pub(crate) fn pair(name: &str, kind: Kind, wake: Wake, bell: &Arc<Bell>) -> (Port, far::Far) {
    let (mut out, out_end) = rtrb::RingBuffer::new(kind.room());
    let (mut back, back_end) = rtrb::RingBuffer::new(kind.room());
    for ring in [&mut out, &mut back] {
        // Written once without committing, so that every page is present before the first cycle.
        drop(ring.write_chunk(kind.room()));
    }
    let counters = Arc::default();
    let rings = (wake == Wake::Event).then(|| Arc::clone(bell));
    let port = Port::new(name, kind, (out, back_end), rings, Arc::clone(&counters));
    (port, far::Far::new(name, kind, wake, (out_end, back), counters))
}
