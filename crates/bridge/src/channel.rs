//! Datagram channels, the papers' XDDP: named ports between a real-time thread and whoever opens them, in any process.
//!
//! | the papers' step | here, real-time side | here, the other side |
//! |---|---|---|
//! | create | [`crate::seam::Builder::port`] | |
//! | bind | [`Port::bind`] | |
//! | send, receive | [`Port::send`], [`Port::receive`] | |
//! | open | | [`crate::attach::Attachment::port`] |
//! | read, write, poll | | [`Channel`]: a file descriptor like any other |
//!
//! The real-time end is two rings in its own process: it makes no system call and never waits. The door carries between
//! the rings and the socket whose other end the client has.
//!
//! * To the client: what is sent while nobody has opened the port waits in the ring, for whoever opens it. When the ring is
//!   full, because nobody came or the client does not read, `send` refuses and counts.
//! * From the client: when the ring is full the door leaves the rest in the socket, and when that is full too the client's
//!   write waits, or says so, as with any socket.
//! * One client at a time. When it is gone, however it ended, the next one may open the port. What it had written arrives;
//!   what it had not read yet is lost as far as it was in the socket, and waits as far as it was in the ring.

mod client;
mod counters;
pub(crate) mod far;
mod port;
mod record;

pub use client::Channel;
pub(crate) use counters::Counters;
pub use counters::PortCounters;
pub use port::{Full, Port};

/// What a port carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Messages, each whole or not at all.
    Message {
        /// Longest message, 1 to 65 536 bytes.
        size: usize,
        /// Messages that find room each way, 1 to 4096; 16 MiB of them at most.
        depth: usize,
    },
    /// Bytes without bounds between them.
    Stream {
        /// Bytes that find room each way, 1 to 1 048 576.
        size: usize,
    },
}

impl Kind {
    /// Why there can be no such port.
    pub(crate) fn complaint(self) -> Option<&'static str> {
        match self {
            Self::Message { size: 1..=LONGEST, depth: 1..=DEEPEST } if self.room() <= 16 << 20 => None,
            Self::Message { .. } => {
                Some("messages of 1 to 65536 bytes, 1 to 4096 of them, not more than 16 MiB in all")
            }
            Self::Stream { size: 1..=WIDEST } => None,
            Self::Stream { .. } => Some("1 to 1048576 bytes"),
        }
    }

    /// Bytes of a ring.
    fn room(self) -> usize {
        match self {
            Self::Message { size, depth } => (record::HEADER + size) * depth,
            Self::Stream { size } => size,
        }
    }
}

/// Longest message, bytes: a socket takes it whole.
const LONGEST: usize = 65_536;
const DEEPEST: usize = 4096;
const WIDEST: usize = 1 << 20;

/// Both sides of a port.
pub(crate) fn pair(name: &str, kind: Kind) -> (Port, far::Far) {
    let (mut out, out_end) = rtrb::RingBuffer::new(kind.room());
    let (mut back, back_end) = rtrb::RingBuffer::new(kind.room());
    for ring in [&mut out, &mut back] {
        // Filled once and not committed: every page is there before the first beat.
        drop(ring.write_chunk(kind.room()));
    }
    let counters = std::sync::Arc::default();
    let port = Port::new(name, kind, out, back_end, std::sync::Arc::clone(&counters));
    (port, far::Far::new(name, kind, out_end, back, counters))
}
