//! One frame under way on a ring: as it was sent, and its replies so far.

use ethercat::link::{End, MAXIMUM_FRAME_LENGTH};
use ethercat::redundancy::{self, Contents, SECOND_BIT};
use ethercat::time::Instant;
use ethercat::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};

type SlotFrame = [u8; MAXIMUM_FRAME_LENGTH];

/// A frame under way.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) sent_at: Instant,
    identity: Option<(u8, u32)>,
    is_over: bool,
    length: usize,
    contents: Contents,
    /// It is sent at the first end alone, and has to come back there after the whole ring.
    pub(super) turns: bool,
    /// Interfaces that took their copy.
    went_out: [bool; 2],
    /// It was sent back from the second end.
    is_turned: bool,
    /// Copy with its reply in `reply`, waiting for the other one's.
    held: Option<End>,
    /// The second copy came back without the part of any SubDevice.
    nothing_to_add: bool,
    /// SubDevices that the first copy passed before it turned back.
    passed: Option<u16>,
    sent: SlotFrame,
    second: SlotFrame,
    reply: SlotFrame,
}

/// Meaning of a frame that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    /// It is the reply: the first copy has passed the whole ring.
    Whole,
    /// It is the reply, and no other half is expected.
    Alone,
    /// One half of the reply, which is kept for the other one.
    Half,
    /// The reply is whole in [`Slot::reply`].
    Both,
    /// It has to be sent back from the second end.
    ToTurn,
    /// It has nothing for a SubDevice; `speaks`: it shows that its end is not silent.
    Nothing {
        /// A SubDevice has answered there.
        speaks: bool,
    },
    /// Left to the MainDevice.
    Other,
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            sent_at: Instant::EPOCH,
            identity: None,
            is_over: true,
            length: 0,
            contents: Contents::default(),
            turns: false,
            went_out: [false; 2],
            is_turned: false,
            held: None,
            nothing_to_add: false,
            passed: None,
            sent: [0; MAXIMUM_FRAME_LENGTH],
            second: [0; MAXIMUM_FRAME_LENGTH],
            reply: [0; MAXIMUM_FRAME_LENGTH],
        }
    }
}

impl Slot {
    /// Takes a frame of at most [`MAXIMUM_FRAME_LENGTH`] bytes over.
    pub(super) fn begin(
        &mut self,
        identity: (u8, u32),
        frame: &[u8],
        before: Option<u16>,
        time: Option<u64>,
    ) {
        self.length = frame.len();
        self.sent[..frame.len()].copy_from_slice(frame);
        self.second[..frame.len()].copy_from_slice(frame);
        self.contents = redundancy::second_copy(&mut self.second[..frame.len()], before, time);
        // In an open ring each copy turns back at the break.
        self.turns = self.contents.latches && before.is_none();
        self.identity = Some(identity);
        (self.is_over, self.is_turned, self.nothing_to_add) = (false, false, false);
        (self.held, self.passed, self.went_out) = (None, None, [true; 2]);
    }

    /// The copy for the second end; `None` if there is none.
    pub(super) fn second(&self) -> Option<&[u8]> {
        (!self.turns).then(|| &self.second[..self.length])
    }

    pub(super) fn note_sent(&mut self, went_out: [bool; 2]) {
        self.went_out = went_out;
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// The end of the missing half.
    pub(super) fn missing(&self) -> End {
        self.held.map_or(End::First, End::other)
    }

    /// True if a half at `end` is all there can be.
    pub(super) fn is_all(&self, end: End) -> bool {
        !self.went_out[end.other() as usize]
    }

    /// The reply as far as it is there.
    pub(super) fn reply(&self) -> &[u8] {
        &self.reply[..self.length]
    }

    /// SubDevices that the first copy passed before it turned back, once.
    pub(super) fn take_passed(&mut self) -> Option<u16> {
        self.passed.take()
    }

    /// Ends with this reply; the reference clock's time, if it is in it.
    pub(super) fn finish(&mut self, reply: &[u8]) -> Option<u64> {
        (self.is_over, self.held) = (true, None);
        self.contents.time(&self.sent[..self.length], reply)
    }

    /// Takes a frame that came in at `end`.
    pub(super) fn arrived(&mut self, end: End, frame: &[u8]) -> Arrived {
        let Some(source) = self.source(frame) else { return Arrived::Other };
        let is_second = source & SECOND_BIT != 0;
        let is_processed = redundancy::is_processed(frame);
        let is_late =
            self.is_over || self.length != frame.len() || self.identity != redundancy::identity(frame);
        match (is_second, is_late) {
            // The MainDevice has never sent its like.
            (true, true) => Arrived::Nothing { speaks: is_processed && end == End::Second },
            (true, false) => self.second_arrived(end, is_processed, frame),
            (false, true) => Arrived::Other,
            (false, false) => self.first_arrived(end, frame),
        }
    }

    /// Bits of the source address that differ from the frame that was sent; `None` if it is another
    /// sender's.
    fn source(&self, frame: &[u8]) -> Option<u8> {
        let (found, sent) = (frame.get(SOURCE_OFFSET..SOURCE_OFFSET + 6)?, &self.sent[SOURCE_OFFSET..]);
        let differs = found[0] ^ sent[0];
        (found[1..] == sent[1..6] && differs & !(SECOND_BIT | PROCESSED_BIT) == 0).then_some(differs)
    }

    fn first_arrived(&mut self, end: End, frame: &[u8]) -> Arrived {
        if end == End::Second {
            let turns = self.turns && !self.is_turned;
            self.is_turned = true;
            return if turns { Arrived::ToTurn } else { Arrived::Whole };
        }
        if !self.is_turned {
            self.passed = self.contents.passed(&self.sent[..self.length], frame);
        }
        match self.held {
            _ if self.turns || self.nothing_to_add => Arrived::Alone,
            Some(End::Second) => {
                match redundancy::splice(&mut self.reply[..self.length], &self.sent[..self.length], frame) {
                    true => Arrived::Both,
                    false => Arrived::Other,
                }
            }
            Some(End::First) => Arrived::Nothing { speaks: true },
            None => {
                self.reply[..frame.len()].copy_from_slice(frame);
                self.held = Some(End::First);
                Arrived::Half
            }
        }
    }

    fn second_arrived(&mut self, end: End, is_processed: bool, frame: &[u8]) -> Arrived {
        let is_empty = end == End::First || !is_processed;
        match self.held {
            Some(End::First) if is_empty => return Arrived::Both,
            Some(End::Second) => return Arrived::Nothing { speaks: true },
            _ if is_empty => {
                self.nothing_to_add = true;
                return Arrived::Nothing { speaks: false };
            }
            // What it did to the frame is the reply so far.
            None => self.reply[..frame.len()].copy_from_slice(&self.sent[..frame.len()]),
            Some(End::First) => {}
        }
        let is_half = self.held.is_none();
        if !redundancy::splice(&mut self.reply[..self.length], &self.second[..self.length], frame) {
            return Arrived::Nothing { speaks: true };
        }
        self.held.get_or_insert(End::Second);
        if is_half { Arrived::Half } else { Arrived::Both }
    }
}
