//! Ports `control` and `stop`: requests of users and programs to the cycle, each answered once.

use super::codec::{self, HEAD, Head, Reader, no_number, unknown_kind};
use super::{DecodeError, Found, NoRoom};
use types::codes;

/// Name of the port.
pub const PORT: &str = "control";

/// Name of the port for [`Action::Stop`], [`Action::Disable`] and [`Action::Deactivate`] alone,
/// with the same messages: they are taken also while another program has the port [`PORT`] open.
pub const STOP_PORT: &str = "stop";

/// Bytes of every message on both ports.
pub const SIZE: usize = HEAD;

/// Request to the cycle.
///
/// | kind | what | number |
/// |---|---|---|
/// | 1 | enable | 0 |
/// | 2 | disable | 0 |
/// | 3 | reset faults | 0 |
/// | 4 | switch controller | index of the controller |
/// | 5 | home | index of the axis |
/// | 6 | stop | 0 |
/// | 7 | deactivate | 0 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifier, repeated by its [`Reply`].
    pub id: u64,
    /// Requested action.
    pub what: Action,
}

/// Actions that can be requested.
///
/// Port [`STOP_PORT`] takes only the actions that stop the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Enables all drives. Done when all are enabled and their axes can be moved.
    Enable,
    /// Brings all axes to rest, then disables all drives. Done when all are disabled.
    Disable,
    /// Resets faults of drives and stops by supervision; the axes hold their positions.
    ResetFaults,
    /// Switches to another controller, by its index in the description. Done when its axes are in
    /// its modes of operation and it moves them.
    SwitchController(u32),
    /// Homes an axis, by its index in the description. Done when its absolute position is known.
    Home(u32),
    /// Makes the active controller bring its axes to rest and drop its motion; drives stay enabled.
    /// Done when the axes rest.
    Stop,
    /// Stops, and leaves no controller active: the axes are held, whatever is commanded, until a
    /// switch to one.
    Deactivate,
}

/// Answer to a [`Request`].
///
/// | kind | what | number |
/// |---|---|---|
/// | 17 | done | 0 |
/// | 18 | refused | [`Refusal`] |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Identifier of the request.
    pub id: u64,
    /// Done, or the reason for the refusal.
    pub outcome: Result<(), Refusal>,
}

codes! {
    /// Reason for a refused request.
    Refusal: u32 {
        /// The message is incomplete, or of another version.
        Malformed = 1, "the request is no message this cycle reads; use a program of the same version";
        /// There is no such controller.
        NoSuchController = 2, "there is no controller of that index; see the description's list";
        /// There is no such axis.
        NoSuchAxis = 3, "there is no axis of that index; see the description's list";
        /// The axes move: a controller is switched at standstill only.
        Moving = 4, "the axes move; stop them first";
        /// An axis is in fault.
        Fault = 5, "an axis is in fault; find out why, then reset faults";
        /// A drive did not follow in time.
        TimedOut = 6, "a drive did not follow in time; look at its state";
        /// The cycle is being stopped.
        Stopping = 7, "the cycle is being stopped";
        /// An earlier request is still in progress.
        Busy = 8, "the last request is still in progress; wait for its reply";
        /// The robot does not support it, for example homing of an axis without a homing method in
        /// the robot file.
        NotPossible = 9, "the robot file does not provide for that";
        /// A later request replaced it.
        Replaced = 10, "a later request took its place";
        /// The drives are not enabled.
        NotEnabled = 11, "the drives are not enabled; enable them first";
        /// Supervision holds an axis, or has stopped it meanwhile.
        Held = 12, "supervision holds an axis; see the reason in its state, fix the cause, then reset";
        /// A drive does not take the mode of operation of the controller that was to be switched
        /// to; the axes are in the modes of before.
        Mode = 13, "a drive did not take the mode of that controller in time; the one before is still active";
        /// An interlock does not permit it.
        Interlock = 14, "an interlock does not permit it; the state of the axes names it";
        /// A request to stop was accepted and is kept, but an axis exchanges no process data: its
        /// standstill is not known.
        NoProcessData = 15, "an axis has no process data, so its standstill is not known; the \
            request is kept, and holds when its process data returns";
        /// The active controller is a process, and none is attached.
        NoProcess = 16, "no controller process is attached; start it, then `onbeat control enable`";
    }
}

impl std::error::Error for Refusal {}

impl Action {
    /// Name of the port for it.
    #[must_use]
    pub const fn port(self) -> &'static str {
        if self.brings_to_rest() { STOP_PORT } else { PORT }
    }

    /// True for actions that stop the axes in any state.
    #[must_use]
    pub const fn brings_to_rest(self) -> bool {
        matches!(self, Self::Stop | Self::Disable | Self::Deactivate)
    }
}

impl Request {
    /// Encodes the request; returns its length.
    ///
    /// # Errors
    /// The buffer is shorter than [`SIZE`].
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, number) = match self.what {
            Action::Enable => (1, 0),
            Action::Disable => (2, 0),
            Action::ResetFaults => (3, 0),
            Action::SwitchController(index) => (4, index),
            Action::Home(axis) => (5, axis),
            Action::Stop => (6, 0),
            Action::Deactivate => (7, 0),
        };
        Ok(codec::begin(buffer, SIZE, Head { kind, number, id: self.id })?.finish())
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (reader, head) = Reader::begin(bytes)?;
        let what = match head.kind {
            1 => Action::Enable,
            2 => Action::Disable,
            3 => Action::ResetFaults,
            4 => Action::SwitchController(head.number),
            5 => Action::Home(head.number),
            6 => Action::Stop,
            7 => Action::Deactivate,
            _ => return Err(unknown_kind("1 to 7, a request", head)),
        };
        if !matches!(what, Action::SwitchController(_) | Action::Home(_)) {
            no_number(head)?;
        }
        reader.finish()?;
        Ok(Self { id: head.id, what })
    }
}

impl Reply {
    /// Encodes the reply; returns its length.
    ///
    /// # Errors
    /// The buffer is shorter than [`SIZE`].
    pub fn encode(&self, buffer: &mut [u8]) -> Result<usize, NoRoom> {
        let (kind, number) = match self.outcome {
            Ok(()) => (17, 0),
            Err(refusal) => (18, refusal as u32),
        };
        Ok(codec::begin(buffer, SIZE, Head { kind, number, id: self.id })?.finish())
    }

    /// Decodes a reply.
    ///
    /// # Errors
    /// The first field that is not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let (reader, head) = Reader::begin(bytes)?;
        let outcome = match head.kind {
            17 => {
                no_number(head)?;
                Ok(())
            }
            18 => {
                let refusal = Refusal::from_code(head.number);
                let found = Found::Number(head.number.into());
                Err(refusal.ok_or(DecodeError { field: "refusal", expected: "1 to 16", found })?)
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

    const ACTIONS: [Action; 7] = [
        Action::Enable,
        Action::Disable,
        Action::ResetFaults,
        Action::SwitchController(3),
        Action::Home(u32::MAX),
        Action::Stop,
        Action::Deactivate,
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
        let outcomes = Refusal::ALL.iter().copied().map(Err).chain([Ok(())]);
        for outcome in outcomes {
            let reply = Reply { id: 7, outcome };
            assert_eq!(reply.encode(&mut buffer), Ok(SIZE));
            assert_eq!(Reply::decode(&buffer), Ok(reply));
            assert!(Request::decode(&buffer).is_err(), "a reply is no request");
        }
    }

    #[test]
    fn bytes_match_the_table() {
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
        assert_eq!(changed(0, 9), "message's kind: expected 1 to 7, a request, found 9");
        assert_eq!(changed(2, 2), "message's version: expected 1, found 2");
        assert_eq!(changed(4, 1), "message's number: expected 0, for this kind, found 1");
        let mut buffer = [0; SIZE];
        Reply { id: 1, outcome: Err(Refusal::Moving) }.encode(&mut buffer).unwrap();
        buffer[4] = 99;
        assert_eq!(
            Reply::decode(&buffer).unwrap_err().to_string(),
            "message's refusal: expected 1 to 16, found 99"
        );
        let no_room = Request { id: 1, what: Action::Stop }.encode(&mut buffer[..3]).unwrap_err();
        assert_eq!(no_room.to_string(), "message's buffer: expected room for 16 bytes, found 3");
    }
}
