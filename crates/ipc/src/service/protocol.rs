//! Protocol of the server: one request, one reply, each one message of a SOCK_SEQPACKET socket,
//! little-endian.
//!
//! ```text
//! request   magic u32   version u16   what u16 (1 attach, 2 lease, 3 port, 4 bus)   name of the port, UTF-8
//!                                     what u16 (5 controller)   version u16
//!                                     what u16 (16 force)   signal u32   kind u32   value u64   time u64, ns
//!                                     what u16 (17 release)   signal u32, all ones for all
//!                                     what u16 (18 accept, 19 set a position)   axis u32   position f64, rad
//! reply     magic u32   version u16   status u16   three numbers u32 each   text, UTF-8       and file descriptors
//! ```
//!
//! Magic and version keep their places in every version.

use std::fmt;
use std::time::Duration;

use crate::force::Force;
use crate::reference::{Given, Purpose};
use crate::value;

/// Request of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Request<'a> {
    /// Attach: description, state and diagnostics.
    Attach,
    /// Take the command lease.
    Lease,
    /// Open the port of this name.
    Port(&'a str),
    /// Force or release signals.
    Force(Force),
    /// Accept or set the position of an axis.
    Position(Given),
    /// Open a connection to the bus.
    Bus,
    /// Become the controller process, by this version of [`crate::controller`].
    Controller(u16),
}

/// Reason for a message that is no request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Another protocol.
    Magic,
    /// Another version of the protocol: its number.
    Version(u16),
    /// Wrong length, unknown operation, or a name that is not UTF-8.
    Content,
}

impl<'a> Request<'a> {
    /// Parses a client's message, which may contain anything.
    ///
    /// # Errors
    /// The first part of the message that is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(Malformed::Magic)?;
        if u32::from_le_bytes(*magic) != MAGIC {
            return Err(Malformed::Magic);
        }
        let (version, rest) = rest.split_first_chunk().ok_or(Malformed::Content)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let (what, name) = rest.split_first_chunk().ok_or(Malformed::Content)?;
        match (u16::from_le_bytes(*what), name) {
            (1, []) => Ok(Self::Attach),
            (2, []) => Ok(Self::Lease),
            (4, []) => Ok(Self::Bus),
            (3, name @ [_, ..]) if name.len() <= LONGEST_NAME => {
                std::str::from_utf8(name).map(Self::Port).map_err(|_| Malformed::Content)
            }
            (5, &[low, high]) => Ok(Self::Controller(u16::from_le_bytes([low, high]))),
            (FORCE, rest) => parse_force(rest).map(Self::Force).ok_or(Malformed::Content),
            (ACCEPT, rest) => parse_given(rest, Purpose::Accept).ok_or(Malformed::Content),
            (SET, rest) => parse_given(rest, Purpose::Set).ok_or(Malformed::Content),
            (RELEASE, &[a, b, c, d]) => {
                let signal = u32::from_le_bytes([a, b, c, d]);
                let force = if signal == ALL { Force::ReleaseAll } else { Force::Release(signal as usize) };
                Ok(Self::Force(force))
            }
            _ => Err(Malformed::Content),
        }
    }

    /// Encodes the request.
    #[must_use]
    pub fn emit(self) -> Vec<u8> {
        let (what, rest) = match self {
            Self::Attach => (1_u16, Vec::new()),
            Self::Lease => (2, Vec::new()),
            Self::Port(name) => (3, name.as_bytes().to_vec()),
            Self::Bus => (4, Vec::new()),
            Self::Controller(version) => (5, version.to_le_bytes().to_vec()),
            Self::Force(force @ Force::Hold { .. }) => (FORCE, emit_force(force)),
            Self::Force(force) => (RELEASE, emit_force(force)),
            Self::Position(Given { axis, position, purpose }) => {
                let axis = u32::try_from(axis).unwrap_or(u32::MAX).to_le_bytes();
                let what = if purpose == Purpose::Accept { ACCEPT } else { SET };
                (what, [&axis[..], &position.to_le_bytes()].concat())
            }
        };
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(what.to_le_bytes());
        bytes.extend(rest);
        bytes
    }
}

fn parse_given<'a>(bytes: &[u8], purpose: Purpose) -> Option<Request<'a>> {
    let (axis, position) = bytes.split_first_chunk()?;
    let position = f64::from_le_bytes(position.try_into().ok()?);
    Some(Request::Position(Given { axis: u32::from_le_bytes(*axis) as usize, position, purpose }))
}

fn parse_force(bytes: &[u8]) -> Option<Force> {
    let (signal, rest) = bytes.split_first_chunk()?;
    let signal = u32::from_le_bytes(*signal);
    let (kind, rest) = rest.split_first_chunk()?;
    let (word, rest) = rest.split_first_chunk()?;
    let time = Duration::from_nanos(u64::from_le_bytes(rest.try_into().ok()?));
    let value = value::decode(u32::from_le_bytes(*kind).into(), u64::from_le_bytes(*word)).ok()??;
    Some(Force::Hold { signal: signal as usize, value, time })
}

fn emit_force(force: Force) -> Vec<u8> {
    let place = |signal: usize| u32::try_from(signal).unwrap_or(ALL - 1).to_le_bytes().to_vec();
    match force {
        Force::ReleaseAll => ALL.to_le_bytes().to_vec(),
        Force::Release(signal) => place(signal),
        Force::Hold { signal, value, time } => {
            let [kind, word] = value::encode(Some(value));
            let time = types::time::nanoseconds(time);
            let numbers = [&(kind as u32).to_le_bytes()[..], &word.to_le_bytes(), &time.to_le_bytes()];
            [&place(signal)[..], &numbers.concat()].concat()
        }
    }
}

/// Reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: Status,
    pub(crate) numbers: [u32; 3],
    pub(crate) text: String,
}

/// Status of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Granted. Numbers and text for an attach: the process, and the name of the interface; for a
    /// port: 0 for messages or 1 for a stream, size, depth.
    Done,
    /// Another version of the protocol, the server's is in the header, or of [`crate::controller`];
    /// the text has both.
    Version,
    /// Not a request.
    Malformed,
    /// The client has not the right.
    NotPermitted,
    /// Held by another process; the first number is its id.
    Taken,
    /// There is no such port; the text lists the ports there are.
    NoSuchPort,
    /// The real-time side is not ready.
    NotReady,
    /// A system call failed; the text has the error.
    Failed,
    /// It cannot be; the text says why.
    Impossible,
}

const STATUSES: [Status; 9] = [
    Status::Done,
    Status::Version,
    Status::Malformed,
    Status::NotPermitted,
    Status::Taken,
    Status::NoSuchPort,
    Status::NotReady,
    Status::Failed,
    Status::Impossible,
];

impl Reply {
    pub(crate) fn refusal(status: Status, text: impl fmt::Display) -> Self {
        Self { status, numbers: [0; 3], text: text.to_string() }
    }

    pub(crate) fn emit(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((self.status as u16).to_le_bytes());
        bytes.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes.extend(self.text.bytes().take(LONGEST_TEXT));
        bytes
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let (magic, rest) = bytes.split_first_chunk().ok_or(Malformed::Magic)?;
        if u32::from_le_bytes(*magic) != MAGIC {
            return Err(Malformed::Magic);
        }
        let (version, rest) = rest.split_first_chunk().ok_or(Malformed::Content)?;
        let version = u16::from_le_bytes(*version);
        if version != VERSION {
            return Err(Malformed::Version(version));
        }
        let (status, mut rest) = rest.split_first_chunk().ok_or(Malformed::Content)?;
        let status = STATUSES.get(usize::from(u16::from_le_bytes(*status)));
        let status = *status.ok_or(Malformed::Content)?;
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let (bytes, after) = rest.split_first_chunk().ok_or(Malformed::Content)?;
            (*number, rest) = (u32::from_le_bytes(*bytes), after);
        }
        Ok(Self { status, numbers, text: String::from_utf8_lossy(rest).into_owned() })
    }
}

/// Magic number, "onbd".
const MAGIC: u32 = u32::from_le_bytes(*b"onbd");

/// Version of the protocol.
pub(crate) const VERSION: u16 = 2;

/// Requests to force and to release, and the number of all signals.
const FORCE: u16 = 16;
const RELEASE: u16 = 17;
/// Requests to accept and to set a position.
const ACCEPT: u16 = 18;
const SET: u16 = 19;
const ALL: u32 = u32::MAX;

/// Longest name of a port, bytes.
pub(crate) const LONGEST_NAME: usize = 64;

/// Longest request, bytes; a longer message is refused.
pub(crate) const LONGEST_REQUEST: usize = 8 + LONGEST_NAME;

const LONGEST_TEXT: usize = 1024;

/// Longest reply, bytes.
pub(crate) const LONGEST_REPLY: usize = 20 + LONGEST_TEXT;

#[cfg(test)]
mod tests {
    use types::Value;

    use super::*;

    #[test]
    fn requests_and_replies_come_back() {
        let time = Duration::from_millis(1_500);
        let hold = Force::Hold { signal: 7, value: Value::Real(-2.5), time };
        for request in [
            Request::Attach,
            Request::Lease,
            Request::Port("trajectory"),
            Request::Bus,
            Request::Controller(7),
            Request::Force(hold),
            Request::Force(Force::Release(3)),
            Request::Force(Force::ReleaseAll),
            Request::Position(Given { axis: 2, position: -0.5, purpose: Purpose::Accept }),
            Request::Position(Given { axis: 7, position: 1e300, purpose: Purpose::Set }),
        ] {
            assert_eq!(Request::parse(&request.emit()), Ok(request));
        }
        for status in STATUSES {
            let reply = Reply { status, numbers: [1, 2, u32::MAX], text: "words".into() };
            assert_eq!(Reply::parse(&reply.emit()), Ok(reply));
        }
    }

    #[test]
    fn what_is_no_request_is_named() {
        let good = Request::Port("imu").emit();
        let changed = |index: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[index] = value;
            bytes
        };
        assert_eq!(Request::parse(&[]), Err(Malformed::Magic));
        assert_eq!(Request::parse(&changed(0, 0)), Err(Malformed::Magic));
        assert_eq!(Request::parse(&changed(4, 9)), Err(Malformed::Version(9)));
        assert_eq!(Request::parse(&changed(6, 9)), Err(Malformed::Content));
        assert_eq!(
            Request::parse(&changed(6, 5)),
            Err(Malformed::Content),
            "a version of more than 2 bytes"
        );
        assert_eq!(Request::parse(&changed(6, 1)), Err(Malformed::Content), "a name where none belongs");
        assert_eq!(Request::parse(&changed(8, 0xFF)), Err(Malformed::Content), "no UTF-8");
        let hold = Force::Hold { signal: 7, value: Value::Bool(true), time: Duration::ZERO };
        let force = Request::Force(hold).emit();
        for length in 8..force.len() {
            assert_eq!(Request::parse(&force[..length]), Err(Malformed::Content), "{length} bytes");
        }
        let mut other = force.clone();
        other[12] = 9;
        assert_eq!(Request::parse(&other), Err(Malformed::Content), "no kind of value");
        other[12] = 0;
        assert_eq!(Request::parse(&other), Err(Malformed::Content), "no value");
        assert_eq!(Request::parse(&good[..8]), Err(Malformed::Content), "no name");
        assert_eq!(Request::parse(&Request::Port(&"x".repeat(65)).emit()), Err(Malformed::Content));
    }
}
