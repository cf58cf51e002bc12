//! Port `control`: what people and programs ask of the cycle once, each answered once.

use std::fmt;

use super::codec::{self, HEAD, Head, Reader, no_number, unknown_kind};
use super::{DecodeError, Found, NoRoom};

/// Name of the port.
pub const PORT: &str = "control";

/// Bytes of every message on it.
pub const SIZE: usize = HEAD;

/// Something asked.
///
/// | kind | what | number |
/// |---|---|---|
/// | 1 | enable | 0 |
/// | 2 | disable | 0 |
/// | 3 | reset faults | 0 |
/// | 4 | switch controller | index of the controller |
/// | 5 | home | index of the axis |
/// | 6 | stop | 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Repeated by its [`Reply`].
    pub id: u64,
    /// What is asked.
    pub what: Action,
}

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// All drives enabled. Done when all are.
    Enable,
    /// All axes to rest, then all drives disabled. Done when all are.
    Disable,
    /// Faults of drives and stops by supervision put back; the axes hold where they stand.
    ResetFaults,
    /// Another controller, by its index in the description.
    SwitchController(u32),
    /// An axis finds its absolute position, by its index in the description. Done when it has.
    Home(u32),
    /// The active controller brings its axes to rest and drops what it was doing; drives stay enabled. Done when they
    /// rest.
    Stop,
}

/// What became of a [`Request`].
///
/// | kind | what | number |
/// |---|---|---|
/// | 17 | done | 0 |
/// | 18 | refused | [`Refusal`] |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// That of the request.
    pub id: u64,
    /// Done, or why not.
    pub outcome: Result<(), Refusal>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Refusal {
    /// No whole message, or one of another version.
    Malformed = 1,
    /// There is no such controller.
    NoSuchController = 2,
    /// There is no such axis.
    NoSuchAxis = 3,
    /// The axes move: a controller is switched at rest only.
    Moving = 4,
    /// An axis is in fault.
    Fault = 5,
    /// A drive did not follow in time.
    TimedOut = 6,
    /// The cycle is being stopped.
    Stopping = 7,
    /// Something asked for before is still being done.
    Busy = 8,
    /// The robot cannot do that: homing an axis whose robot file says none, for one.
    NotPossible = 9,
    /// Something asked for later took its place.
    Replaced = 10,
    /// Drives are not enabled.
    NotEnabled = 11,
}

impl Refusal {
    /// Every code.
    pub const ALL: [Self; 11] = [
        Self::Malformed,
        Self::NoSuchController,
        Self::NoSuchAxis,
        Self::Moving,
        Self::Fault,
        Self::TimedOut,
        Self::Stopping,
        Self::Busy,
        Self::NotPossible,
        Self::Replaced,
        Self::NotEnabled,
    ];

    /// For people: what it is and what to do.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Malformed => {
                "the request is no message this cycle reads; use a program of the same version"
            }
            Self::NoSuchController => "there is no controller of that index; see the description's list",
            Self::NoSuchAxis => "there is no axis of that index; see the description's list",
            Self::Moving => "the axes move; stop them first",
            Self::Fault => "an axis is in fault; find out why, then reset faults",
            Self::TimedOut => "a drive did not follow in time; look at its state",
            Self::Stopping => "the cycle is being stopped",
            Self::Busy => "what was asked before is still being done; wait for its reply",
            Self::NotPossible => "the robot file gives no way to do that",
            Self::Replaced => "a later request took its place",
            Self::NotEnabled => "the drives are not enabled; enable them first",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Refusal {}

impl Request {
    /// Writes it; gives its length.
    ///
    /// # Errors
    /// Less room than [`SIZE`].
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, number) = match self.what {
            Action::Enable => (1, 0),
            Action::Disable => (2, 0),
            Action::ResetFaults => (3, 0),
            Action::SwitchController(index) => (4, index),
            Action::Home(axis) => (5, axis),
            Action::Stop => (6, 0),
        };
        Ok(codec::begin(buffer, SIZE, Head { kind, number, id: self.id })?.finish())
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first field that is not as it should be.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (reader, head) = Reader::begin(bytes)?;
        let what = match head.kind {
            1 => Action::Enable,
            2 => Action::Disable,
            3 => Action::ResetFaults,
            4 => Action::SwitchController(head.number),
            5 => Action::Home(head.number),
            6 => Action::Stop,
            _ => return Err(unknown_kind("1 to 6, a request", head)),
        };
        if !matches!(what, Action::SwitchController(_) | Action::Home(_)) {
            no_number(head)?;
        }
        reader.finish()?;
        Ok(Self { id: head.id, what })
    }
}

impl Reply {
    /// Writes it; gives its length.
    ///
    /// # Errors
    /// Less room than [`SIZE`].
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, number) = match self.outcome {
            Ok(()) => (17, 0),
            Err(refusal) => (18, refusal as u32),
        };
        Ok(codec::begin(buffer, SIZE, Head { kind, number, id: self.id })?.finish())
    }

    /// Reads it.
    ///
    /// # Errors
    /// The first field that is not as it should be.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (reader, head) = Reader::begin(bytes)?;
        let outcome = match head.kind {
            17 => {
                no_number(head)?;
                Ok(())
            }
            18 => {
                let refusal = Refusal::ALL.into_iter().find(|refusal| *refusal as u32 == head.number);
                let found = Found::Number(head.number.into());
                Err(refusal.ok_or(DecodeError { field: "refusal", expected: "1 to 11", found })?)
            }
            _ => return Err(unknown_kind("17 or 18, a reply", head)),
        };
        reader.finish()?;
        Ok(Self { id: head.id, outcome })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACTIONS: [Action; 6] = [
        Action::Enable,
        Action::Disable,
        Action::ResetFaults,
        Action::SwitchController(3),
        Action::Home(u32::MAX),
        Action::Stop,
    ];

    #[test]
    fn what_is_written_reads_back() {
        let mut buffer = [0; SIZE];
        for (id, what) in (u64::MAX - 9..).zip(ACTIONS) {
            let request = Request { id, what };
            assert_eq!(request.encode(&mut buffer), Ok(SIZE));
            assert_eq!(Request::decode(&buffer), Ok(request));
            assert!(Reply::decode(&buffer).is_err(), "a request is no reply");
        }
        let outcomes = Refusal::ALL.into_iter().map(Err).chain([Ok(())]);
        for outcome in outcomes {
            let reply = Reply { id: 7, outcome };
            assert_eq!(reply.encode(&mut buffer), Ok(SIZE));
            assert_eq!(Reply::decode(&buffer), Ok(reply));
            assert!(Request::decode(&buffer).is_err(), "a reply is no request");
        }
    }

    #[test]
    fn the_bytes_are_those_of_the_table() {
        let mut buffer = [0xEE; SIZE];
        let request = Request { id: 0x0102_0304_0506_0708, what: Action::SwitchController(5) };
        request.encode(&mut buffer).unwrap();
        assert_eq!(buffer, [4, 0, 1, 0, 5, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn what_is_no_message_is_named() {
        let mut good = [0; SIZE + 1];
        Request { id: 1, what: Action::Stop }.encode(&mut good).unwrap();
        let sentence = |bytes: &[u8]| Request::decode(bytes).unwrap_err().to_string();
        assert_eq!(
            sentence(&good[..9]),
            "message's id: expected a message long enough to hold it, found 9 bytes"
        );
        assert_eq!(
            sentence(&good),
            "message's length: expected nothing after its last field, found 17 bytes"
        );
        let changed = |at: usize, to: u8| {
            let mut bytes = good;
            bytes[at] = to;
            sentence(&bytes[..SIZE])
        };
        assert_eq!(changed(0, 9), "message's kind: expected 1 to 6, a request, found 9");
        assert_eq!(changed(2, 2), "message's version: expected 1, found 2");
        assert_eq!(changed(4, 1), "message's number: expected 0, for this kind, found 1");
        let mut buffer = [0; SIZE];
        Reply { id: 1, outcome: Err(Refusal::Moving) }.encode(&mut buffer).unwrap();
        buffer[4] = 99;
        assert_eq!(
            Reply::decode(&buffer).unwrap_err().to_string(),
            "message's refusal: expected 1 to 11, found 99"
        );
        let no_room = Request { id: 1, what: Action::Stop }.encode(&mut buffer[..3]).unwrap_err();
        assert_eq!(no_room.to_string(), "message's buffer: expected room for 16 bytes, found 3");
    }
}
