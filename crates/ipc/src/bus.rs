//! Requests to the bus of a running cycle: SDOs, the state of its SubDevices, and events.
//!
//! A client requests a connection at the server ([`crate::client::Client::bus`]) and then sends
//! lines of JSON over a stream socket, a [`Request`] each; replies carry the number of their
//! request and may come in another order. An ordinary thread of the cycle's process, the
//! [`Server`], serves all connections through a [`Backend`]. The cycle sees only the requests that
//! reach its mailboxes.
//!
//! | limit | |
//! |---|---|
//! | longest object that is read or written | [`LONGEST_OBJECT`] bytes |
//! | longest line | [`LONGEST_LINE`] bytes; a longer one ends the connection |
//! | requests of one connection under way | [`MOST_UNDER_WAY`]; further ones wait in its socket |
//! | connections | 64; 32 of users with read access only, 8 of each |
//! | events kept | [`EVENTS_KEPT`]; a reader too slow for them gets the number it missed |

mod bytes;
mod client;
mod history;
mod message;
mod server;
mod session;

pub(crate) use server::Admission;
pub(crate) use session::{Guest, pair};

pub use bytes::Bytes;
pub use client::{BusClient, BusError, Events};
pub use history::EVENTS_KEPT;
pub use message::{
    BusStatus, ClockStatus, Event, Happening, LatchEdge, LatchInput, Outcome, PortLink, Reply, Request,
    Service, Severity, SubDeviceStatus, SyncStatus, WorkingCounterHistory,
};
pub use server::{Backend, Counters, Guests, Publisher, Server, Ticket};
pub use session::{LONGEST_LINE, MOST_UNDER_WAY};
pub use types::{
    CableEnd, ErrorCounters, PortErrorCounters, RingStatus, WorkingCounter, WorkingCounterChange,
};

/// Longest object that is read or written, bytes.
pub const LONGEST_OBJECT: usize = 65_536;

#[cfg(test)]
mod tests;
