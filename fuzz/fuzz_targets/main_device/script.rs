//! Fates of the replies, one after the other: an input's bytes read as a series of commands. Behind
//! its end every reply is true, except for the lies that last.

use ethercat::register::{AL_STATUS, DL_STATUS, SyncManager, TYPE, dc, sii_interface, sync_manager};
use ethercat::wire::Command;

/// Fate of the next reply, or another event.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    /// So many replies are true.
    True(u32),
    /// So many requests never arrive.
    RequestLost(u8),
    /// So many replies never arrive.
    ReplyLost(u8),
    /// It comes that much later, in quarters of a millisecond.
    Late(u8),
    /// It comes again that much later.
    Twice(u8),
    /// A datagram's working counter is another one.
    WorkingCounter { datagram: u8, value: u8 },
    /// A datagram's bytes are others.
    Bytes { datagram: u8, at: u8, bytes: Vec<u8> },
    /// One byte of the frame is another one.
    Flip { at: u16, by: u8 },
    /// The frame ends early.
    Short(u16),
    /// An older reply comes before it.
    Older(u8),
    /// A frame of another sender comes before it.
    Foreign(Vec<u8>),
    /// Replies of a kind are changed from now on.
    Lie(Lie),
    /// No lies any more.
    Truth,
    /// An event at a SubDevice.
    Segment(SegmentDeed, u8),
    /// The host stalls for so many times 4 ms.
    Stall(u8),
    /// A mailbox request.
    Request { kind: u8, position: u8, index: u16 },
    /// Another state is requested.
    State(u8),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SegmentDeed {
    PowerCycle,
    Disconnect,
    Connect,
    Stop,
    Go,
}

/// A change to all replies of a kind.
#[derive(Clone, Debug)]
pub(crate) struct Lie {
    about: About,
    at: u8,
    bytes: Vec<u8>,
    working_counter: Option<u8>,
    /// Replies still to change; 255 is for ever.
    pub(crate) left: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Register(u16),
    ProcessData,
    All,
}

/// The bytes of the input that are still to be done.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// True at the end.
    pub(crate) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next deed, or `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Deed> {
        let what = self.byte()?;
        Some(match what {
            0x00..=0x7F => Deed::True(u32::from(what) + 1),
            0x80..=0x8F => Deed::True((u32::from(what & 0x0F) + 1) * 64),
            0x90..=0x97 => Deed::RequestLost(what & 7),
            0x98..=0x9F => Deed::ReplyLost(what & 7),
            0xA0..=0xA7 => Deed::Late(self.byte()?),
            0xA8..=0xAB => Deed::Twice(self.byte()?),
            0xAC..=0xAF => Deed::WorkingCounter { datagram: self.byte()?, value: self.byte()? },
            0xB0..=0xB7 => {
                Deed::Bytes { datagram: self.byte()?, at: self.byte()?, bytes: self.bytes(what & 7) }
            }
            0xB8..=0xBA => Deed::Flip { at: self.word()?, by: self.byte()? },
            0xBB => Deed::Short(self.word()?),
            0xBC => Deed::Older(self.byte()?),
            0xBD => {
                let length = self.byte()?;
                Deed::Foreign(self.bytes(length))
            }
            0xBE => Deed::Stall(self.byte()?),
            0xBF => Deed::Truth,
            0xC0..=0xDF => Deed::Lie(self.lie(what & 0x1F)?),
            0xE0..=0xE3 => Deed::Segment(SegmentDeed::PowerCycle, what & 3),
            0xE4..=0xE7 => Deed::Segment(SegmentDeed::Disconnect, what & 3),
            0xE8..=0xEB => Deed::Segment(SegmentDeed::Connect, what & 3),
            0xEC..=0xED => Deed::Segment(SegmentDeed::Stop, what & 1),
            0xEE..=0xEF => Deed::Segment(SegmentDeed::Go, what & 1),
            0xF0..=0xF7 => Deed::Request { kind: what & 7, position: self.byte()?, index: self.word()? },
            _ => Deed::State(what & 7),
        })
    }

    /// Subject of it in the low four bits, a change of the working counter too in the fifth.
    fn lie(&mut self, kind: u8) -> Option<Lie> {
        let about = match kind & 0x0F {
            0 | 1 => About::Register(sii_interface::CONTROL),
            2 | 3 => About::Register(AL_STATUS),
            4 | 5 => About::Register(MAILBOX_IN),
            6 => About::Register(SyncManager::register(0) + sync_manager::STATUS_OFFSET),
            7 => About::Register(SyncManager::register(1) + sync_manager::STATUS_OFFSET),
            8 => About::Register(DL_STATUS),
            9 => About::Register(TYPE),
            10 => About::Register(dc::RECEIVE_TIME),
            11 => About::Register(dc::SYSTEM_TIME),
            12 => About::Register(self.word()?),
            13 | 14 => About::ProcessData,
            _ => About::All,
        };
        let working_counter = if kind & 0x10 == 0 { None } else { Some(self.byte()?) };
        let (left, at, length) = (self.byte()?, self.byte()?, self.byte()?);
        Some(Lie { about, at, bytes: self.bytes(length & 0x3F), working_counter, left })
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    fn bytes(&mut self, length: u8) -> Vec<u8> {
        let (bytes, rest) = self.rest.split_at(self.rest.len().min(usize::from(length)));
        self.rest = rest;
        bytes.to_vec()
    }
}

impl Lie {
    /// Changes the reply if it has this datagram.
    pub(crate) fn tell(
        &mut self,
        command: Command,
        register: u16,
        data: &mut [u8],
        working_counter: &mut [u8],
    ) -> bool {
        let process_data = command.is_logical();
        let meant = match self.about {
            About::Register(about) => !process_data && command != Command::Nop && register == about,
            About::ProcessData => process_data,
            About::All => command != Command::Nop,
        };
        if !meant || self.left == 0 {
            return false;
        }
        self.left -= u8::from(self.left != u8::MAX);
        write(data, self.at.into(), &self.bytes);
        if let Some(value) = self.working_counter {
            working_counter.copy_from_slice(&u16::from(value).to_le_bytes());
        }
        true
    }
}

/// As many of `bytes` as there is room for.
pub(crate) fn write(data: &mut [u8], at: usize, bytes: &[u8]) {
    data.iter_mut().skip(at).zip(bytes).for_each(|(old, &new)| *old = new);
}

/// Mailbox offset at which the devices with CoE send.
const MAILBOX_IN: u16 = 0x1080;
