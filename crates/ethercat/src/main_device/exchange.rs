//! Frames out and frames in: which are on their way, and which reply belongs to which.
//!
//! Every frame starts with a NOP datagram that carries a 32-bit generation number, which SubDevices
//! pass on unchanged. A reply belongs to a frame if index and generation match and every datagram
//! has the command, address and length that were sent. Each slot keeps its frame for that
//! comparison and for the next frame, which is mostly the same. The 8-bit index alone repeats too
//! soon: after a long stall a MainDevice that trusts it takes old replies for new ones, for ever.

mod outgoing;
mod reply_time;

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::link::MAXIMUM_FRAME_LENGTH;
use crate::time::Instant;
use crate::wire::ethernet::{ETHERTYPE_OFFSET, PROCESSED_BIT, SOURCE_OFFSET};
use crate::wire::frame::{self, FrameError};
use crate::wire::{
    Address, Command, DatagramHeader, FrameBuilder, MacAddress, datagram, read_u32, read_u64,
};

use super::report::{Reception, ReceptionCounters};

pub(super) use outgoing::Outgoing;
use reply_time::ReplyTime;

/// Frames on their way at the same time.
pub(super) const SLOTS: usize = 64;

/// Service frames on their way at once that a bus is trusted with, however many were lost.
const FEWEST_SERVICES: usize = 8;

/// Datagrams in a frame: each takes twelve bytes and at least one of data.
const DATAGRAMS: usize = 1500 / 13;

/// Bytes of the generation number.
const GENERATION_LENGTH: u16 = 4;

/// Frames whose generation numbers are known to be ours: a quarter of an hour at 1 kHz. Another
/// MainDevice that started at a random number has one of them by chance, in one of four thousand
/// cases.
const REMEMBERED: u64 = 1 << 20;

/// Owner of a datagram: it gets the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Process data: the chunk's number, and which part of it the datagram carries.
    Chunk(u16, ChunkPart),
    /// The reference clock's system time, handed on to the others.
    ReferenceTime,
    /// The same, on and on until the clocks agree.
    Settling,
    /// System time differences of all clocks at once.
    Spread,
    /// This host's time, for the reference clock.
    HostTime,
    /// AL status of all SubDevices.
    BusStatus,
    /// System time difference of the SubDevice polled in this cycle.
    ClockDifference,
    /// Mail in the mailbox of the SubDevice polled in this cycle.
    MailboxStatus,
    /// The bus-wide part of bring-up.
    Bus,
    /// The survey of station addresses: this place, in the order in which frames are processed.
    Survey(u16),
    /// The visit of a SubDevice without an address.
    Visit,
    /// The worker of the SubDevice at this position.
    Worker(u16),
    /// No receiver: the datagram shows that the frame has passed a SubDevice.
    Passage,
}

/// Part of a chunk that a datagram carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ChunkPart {
    /// LRW: outputs, then inputs.
    #[default]
    Both,
    /// LWR.
    Outputs,
    /// LRD.
    Inputs,
}

/// Purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Belongs to a cycle: lost when the cycle ends.
    ProcessData,
    /// Bring-up and mailbox: lost when its time is up, and sent again.
    Service,
}

/// A datagram of a frame that was built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Mask of the bits of its header's first eight bytes that SubDevices leave unchanged.
    fixed: u64,
    /// The end of its answer on a quiet bus.
    pub(super) usual: Tail,
    /// Offsets of its header and of its working counter in the frame: SubDevices do not move them.
    offset: u16,
    working_counter: u16,
    /// Receiver of the reply.
    pub(super) owner: Owner,
}

/// The last four bytes of a datagram, read as one little-endian number: data, and the working
/// counter in the upper half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) bits: u32,
    /// The bits that are compared.
    pub(super) mask: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Unused,
    InFlight(Purpose),
    /// Answered or lost, with its purpose.
    Over(Purpose),
}

/// A frame, kept as it was sent: the next one in this slot is mostly the same, and its reply is
/// compared with it.
#[derive(Debug)]
struct Slot {
    state: SlotState,
    generation: u32,
    sent_at: Instant,
    /// Bytes of the frame.
    length: usize,
    frame: Vec<u8>,
    /// Datagrams behind the generation number.
    datagrams: Vec<Sent>,
}

/// A reply with process data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usual {
    /// Slot of the frame it answers.
    pub(super) index: usize,
    /// Each of its datagrams ends as on a quiet bus.
    pub(super) ends_as_usual: bool,
}

/// Generation numbers and their replies.
#[derive(Debug, Default)]
struct Numbers {
    /// The newest.
    generation: u32,
    /// The newest frames that were answered; the newest is the lowest bit.
    answered: u64,
    /// Frames on their way, by purpose.
    in_flight: [usize; 2],
}

/// The frames on their way.
#[derive(Debug)]
pub(super) struct Exchange {
    source: MacAddress,
    slots: Vec<Slot>,
    numbers: Numbers,
    /// Most service frames on their way at once: halved for each loss, as by a bus that answers
    /// them too slowly, and one more for each answer.
    services: usize,
    /// Time that replies to these take.
    pub(super) reply_time: ReplyTime,
    /// Replies marked as circulating count: a SubDevice behind a port 0 without a link marks them.
    pub(super) takes_circulating: bool,
    /// Replies from our own source address count, if a SubDevice has touched them.
    pub(super) takes_unchanged_source: bool,
    /// Frames that came back from our own source address, touched by SubDevices and not.
    pub(super) unchanged_source: u64,
    pub(super) reflected: u64,
    pub(super) counters: ReceptionCounters,
}

impl Slot {
    /// A frame of a generation number and nothing else.
    fn new(index: usize, source: MacAddress) -> Self {
        let mut frame = vec![0; MAXIMUM_FRAME_LENGTH];
        let nop = DatagramHeader::new(Command::Nop, index as u8, Address::Logical(0), GENERATION_LENGTH);
        FrameBuilder::new(&mut frame, source).push(nop);
        Self {
            state: SlotState::Unused,
            generation: 0,
            sent_at: Instant::EPOCH,
            length: 0,
            frame,
            datagrams: Vec::with_capacity(DATAGRAMS),
        }
    }

    /// Compares `reply`, whose datagrams end at `end`, with what was sent, in one pass.
    fn compare(&self, reply: &[u8], end: usize, circulating: u64) -> Result<(), Reception> {
        if head(reply, frame::DATAGRAMS_OFFSET) & MORE_FOLLOWS == 0 {
            return Err(Reception::Truncated);
        }
        for sent in &self.datagrams {
            let at = usize::from(sent.offset);
            if sent.working_counter() + datagram::WORKING_COUNTER_LENGTH > end {
                return Err(Reception::Truncated);
            }
            let differs = (head(reply, at) ^ head(&self.frame, at)) & (sent.fixed | circulating);
            if differs != 0 {
                let ends = differs == MORE_FOLLOWS && head(reply, at) & MORE_FOLLOWS == 0;
                return Err(if ends { Reception::Truncated } else { Reception::Mismatched });
            }
        }
        Ok(())
    }
}

impl Exchange {
    pub(super) fn new(source: MacAddress) -> Self {
        Self {
            source,
            slots: (0..SLOTS).map(|index| Slot::new(index, source)).collect(),
            numbers: Numbers::default(),
            services: SLOTS,
            reply_time: ReplyTime::new(),
            takes_circulating: true,
            takes_unchanged_source: false,
            unchanged_source: 0,
            reflected: 0,
            counters: ReceptionCounters::default(),
        }
    }

    /// The same, with generation numbers from this one on.
    pub(super) fn starting_at(self, generation: u32) -> Self {
        Self { numbers: Numbers { generation, ..self.numbers }, ..self }
    }

    /// Frames of this purpose that are on their way.
    pub(super) fn in_flight(&self, purpose: Purpose) -> usize {
        self.numbers.in_flight[purpose as usize]
    }

    /// True if another service frame may be on its way.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight(Purpose::Service) < self.services
            && self.slots.iter().any(|it| !matches!(it.state, SlotState::InFlight(_)))
    }

    /// Finds the frame that `bytes` answer. Counts and refuses everything else.
    #[cold]
    pub(super) fn accept(&mut self, bytes: &[u8]) -> Result<(usize, Purpose), Reception> {
        let (index, purpose) = self.look_closely(bytes)?;
        self.answered(index, purpose);
        if purpose == Purpose::Service {
            self.services = (self.services + 1).min(SLOTS);
        }
        Ok((index, purpose))
    }

    /// Finds the frame with process data that `bytes` answer, if the reply is a usual one: marked
    /// by a SubDevice, no shorter than sent, all headers as sent. If it finds none,
    /// [`Exchange::accept`] may still find one: nothing has changed.
    #[inline]
    pub(super) fn accept_usual(&mut self, bytes: &[u8]) -> Option<Usual> {
        let start: &[u8; GENERATION_AT + 4] = bytes.first_chunk()?;
        let index = usize::from(start[frame::DATAGRAMS_OFFSET + 1]);
        let slot = self.slots.get(index)?;
        if slot.state != SlotState::InFlight(Purpose::ProcessData) {
            return None;
        }
        let (bytes, sent) = (bytes.get(..slot.length)?, slot.frame.get(..slot.length)?);
        let sent_start: &[u8; GENERATION_AT + 4] = sent.first_chunk()?;
        let of_both = |at| (head(start, at), head(sent_start, at));
        let differs = |(one, other): (u64, u64), mask| (one ^ other) & mask;
        let is_marked = start[SOURCE_OFFSET] & PROCESSED_BIT != 0;
        // EtherType and EtherCAT header; command, address and length of the generation number; the
        // number itself.
        let different = differs(of_both(ETHERTYPE_OFFSET), u64::from(u32::MAX))
            | differs(of_both(frame::DATAGRAMS_OFFSET), GENERATION_FIXED | MORE_FOLLOWS)
            | differs(of_both(GENERATION_AT - 4), u64::from(u32::MAX) << 32);
        let circulating = if self.takes_circulating { 0 } else { CIRCULATING };
        if !is_marked || different != 0 {
            return None;
        }
        let (mut different, mut unusual) = (0, 0);
        for datagram in &slot.datagrams {
            let at = usize::from(datagram.offset);
            different |= differs((head(bytes, at), head(sent, at)), datagram.fixed | circulating);
            let tail = read_u32(bytes, usize::from(datagram.working_counter) - 2).unwrap_or(0);
            unusual |= (tail ^ datagram.usual.bits) & datagram.usual.mask;
        }
        if different != 0 {
            return None;
        }
        self.answered(index, Purpose::ProcessData);
        Some(Usual { index, ends_as_usual: unusual == 0 })
    }

    /// The frame in this slot is answered.
    #[inline(always)]
    fn answered(&mut self, index: usize, purpose: Purpose) {
        let slot = &mut self.slots[index];
        slot.state = SlotState::Over(purpose);
        let age = self.numbers.generation.wrapping_sub(slot.generation);
        self.numbers.answered |= 1_u64.checked_shl(age).unwrap_or(0);
        self.numbers.in_flight[purpose as usize] -= 1;
        self.counters.accepted += 1;
    }

    /// The frame that `bytes` answer in any accepted way; all else is counted by its kind.
    fn look_closely(&mut self, bytes: &[u8]) -> Result<(usize, Purpose), Reception> {
        let mut outcome = self.matching_slot(bytes);
        if bytes.get(SOURCE_OFFSET).is_some_and(|byte| byte & PROCESSED_BIT == 0) {
            outcome = self.unmarked(bytes, outcome);
        }
        outcome.inspect_err(|reception| self.counters.count(*reception))
    }

    /// Meaning of a frame that no SubDevice has marked: a reply of a segment that leaves the source
    /// address alone, if it shows that it passed a SubDevice; our frame, sent back by a loop or a
    /// switch; or a frame of another source.
    fn unmarked(
        &mut self,
        bytes: &[u8],
        outcome: Result<(usize, Purpose), Reception>,
    ) -> Result<(usize, Purpose), Reception> {
        let source = bytes.get(SOURCE_OFFSET..SOURCE_OFFSET + 6);
        let (index, _) = match outcome {
            Ok(found) if source == Some(&self.source.0[..]) => found,
            Err(reception) if self.takes_unchanged_source => return Err(reception),
            _ => return Err(Reception::Foreign),
        };
        if !self.slots[index].datagrams.iter().any(|sent| sent.is_touched(&self.slots[index].frame, bytes))
        {
            self.reflected += 1;
            return Err(Reception::Foreign);
        }
        self.unchanged_source += 1;
        if self.takes_unchanged_source { outcome } else { Err(Reception::Foreign) }
    }

    fn matching_slot(&self, bytes: &[u8]) -> Result<(usize, Purpose), Reception> {
        let end = match frame::checked_end(bytes) {
            Ok(end) => end,
            Err(FrameError::NotEtherCat { .. } | FrameError::WrongType { .. }) => {
                return Err(Reception::Foreign);
            }
            Err(_) => return Err(Reception::Truncated),
        };
        let first = frame::DATAGRAMS_OFFSET;
        if (head(bytes, first) ^ GENERATION_HEAD) & GENERATION_FIXED != 0 {
            let cut = frame::place_at(bytes, first, end).is_err();
            return Err(if cut { Reception::Truncated } else { Reception::OtherMainDevice });
        }
        if end < first + GENERATION_END {
            return Err(Reception::Truncated);
        }
        let generation = read_u32(bytes, GENERATION_AT).unwrap_or(0);
        if !self.is_ours(generation) {
            return Err(Reception::OtherMainDevice);
        }
        let index = usize::from(bytes[first + 1]);
        let slot = self.slots.get(index).ok_or(Reception::Mismatched)?;
        match slot.state {
            SlotState::Unused => Err(Reception::Mismatched),
            SlotState::InFlight(purpose) if slot.generation == generation => {
                let circulating = if self.takes_circulating { 0 } else { CIRCULATING };
                slot.compare(bytes, end, circulating).map(|()| (index, purpose))
            }
            // Of an older frame, or of one that has expired.
            _ if self.was_answered(generation) => Err(Reception::Duplicate),
            _ => Err(Reception::Late),
        }
    }

    /// True if the frame of this generation was answered, as long as that is remembered.
    fn was_answered(&self, generation: u32) -> bool {
        let age = self.numbers.generation.wrapping_sub(generation);
        self.numbers.answered.checked_shr(age).is_some_and(|answered| answered & 1 == 1)
    }

    /// True if one of our newest frames had this generation number.
    fn is_ours(&self, generation: u32) -> bool {
        u64::from(self.numbers.generation.wrapping_sub(generation)) < self.counters.sent.min(REMEMBERED)
    }

    /// A reply came `now`, too late: a measurement of the time that replies take.
    pub(super) fn learn_late(&mut self, now: Instant, bytes: &[u8]) {
        let generation = read_u32(bytes, GENERATION_AT).unwrap_or(0);
        let age = self.numbers.generation.wrapping_sub(generation);
        self.reply_time.late(generation, age, now);
    }

    /// The frame in a slot.
    pub(super) fn frame(&self, index: usize) -> &[u8] {
        self.slots.get(index).and_then(|it| it.frame.get(..it.length)).unwrap_or_default()
    }

    /// The datagrams of the frame in a slot.
    pub(super) fn datagrams(&self, index: usize) -> &[Sent] {
        self.slots.get(index).map_or(&[], |it| &it.datagrams)
    }

    pub(super) fn datagrams_mut(&mut self, index: usize) -> &mut [Sent] {
        self.slots.get_mut(index).map_or(&mut [], |it| &mut it.datagrams)
    }

    /// When the frame in this slot was sent.
    pub(super) fn sent_at(&self, index: usize) -> Instant {
        self.slots[index].sent_at
    }

    /// The datagrams of a slot, taken out so that their owners can be served;
    /// [`Exchange::put_back`] them.
    pub(super) fn take_datagrams(&mut self, index: usize) -> Vec<Sent> {
        core::mem::take(&mut self.slots[index].datagrams)
    }

    pub(super) fn put_back(&mut self, index: usize, datagrams: Vec<Sent>) {
        self.slots[index].datagrams = datagrams;
    }

    /// The next frame of `purpose` that was sent at least `age` before `now`; it is lost from here
    /// on.
    pub(super) fn expire(&mut self, purpose: Purpose, now: Instant, age: Duration) -> Option<usize> {
        let is_expired = |&index: &usize| now.since(self.slots[index].sent_at) >= age;
        let index = self.slots_in_flight(purpose).find(is_expired)?;
        self.slots[index].state = SlotState::Over(purpose);
        self.numbers.in_flight[purpose as usize] -= 1;
        self.counters.lost += 1;
        if purpose == Purpose::Service {
            self.services = (self.services / 2).max(FEWEST_SERVICES);
        }
        Some(index)
    }

    /// When the oldest frame of `purpose` was sent.
    pub(super) fn oldest(&self, purpose: Purpose) -> Option<Instant> {
        self.slots_in_flight(purpose).map(|index| self.slots[index].sent_at).min()
    }

    /// Slots with a frame of `purpose` on its way. The search starts at the end where such frames
    /// are placed, and stops at the last of them: mostly it visits one or two slots.
    fn slots_in_flight(&self, purpose: Purpose) -> impl Iterator<Item = usize> {
        let place = move |turn| match purpose {
            Purpose::ProcessData => turn,
            Purpose::Service => SLOTS - 1 - turn,
        };
        let is_in_flight = move |&index: &usize| self.slots[index].state == SlotState::InFlight(purpose);
        (0..SLOTS).map(place).filter(is_in_flight).take(self.in_flight(purpose))
    }
}

impl Sent {
    /// Data and working counter in an accepted reply.
    pub(super) fn answer<'a>(&self, reply: &'a [u8]) -> (&'a [u8], u16) {
        let start = self.data_offset();
        // Accepted means that every datagram is at the offset at which it was sent.
        let answer = reply.get(start..self.working_counter() + datagram::WORKING_COUNTER_LENGTH);
        let Some((data, counter)) = answer.and_then(|it| it.split_last_chunk()) else { return (&[], 0) };
        (data, u16::from_le_bytes(*counter))
    }

    /// Offset of its data in the frame.
    pub(super) fn data_offset(&self) -> usize {
        usize::from(self.offset) + datagram::HEADER_LENGTH
    }

    fn working_counter(&self) -> usize {
        self.working_counter.into()
    }

    /// Bytes of its data.
    fn length(&self) -> usize {
        self.working_counter() - self.data_offset()
    }

    /// True if an accepted reply to `frame` shows that a SubDevice was passed: its working counter
    /// counts, or its position.
    fn is_touched(&self, frame: &[u8], reply: &[u8]) -> bool {
        let at = usize::from(self.offset);
        self.answer(reply).1 != 0 || (head(frame, at) ^ head(reply, at)) & ADDRESS != 0
    }
}

/// Parts of the first eight bytes of a datagram's header, read as one little-endian number
/// (ETG.1000.4, 5.4.1).
const COMMAND: u64 = 0xFF;
const INDEX: u64 = 0xFF << 8;
const POSITION: u64 = 0xFFFF << 16;
const ADDRESS: u64 = 0xFFFF_FFFF << 16;
const LENGTH: u64 = 0x07FF << 48;
const CIRCULATING: u64 = 1 << 62;
const MORE_FOLLOWS: u64 = 1 << 63;

/// Mask of the header bits that SubDevices leave unchanged in a datagram of `command`. They count
/// the position up in auto-increment and broadcast commands; station and logical addresses come
/// back as sent.
const fn fixed(command: Command) -> u64 {
    use Command::{Aprd, Aprw, Apwr, Armw, Brd, Brw, Bwr};
    let all = COMMAND | INDEX | ADDRESS | LENGTH | MORE_FOLLOWS;
    match command {
        Aprd | Apwr | Aprw | Armw | Brd | Bwr | Brw => all & !POSITION,
        _ => all,
    }
}

/// The generation number's datagram: command NOP, address 0, four bytes.
const GENERATION_HEAD: u64 = (GENERATION_LENGTH as u64) << 48;
const GENERATION_FIXED: u64 = COMMAND | ADDRESS | LENGTH;
const GENERATION_AT: usize = frame::DATAGRAMS_OFFSET + datagram::HEADER_LENGTH;
const GENERATION_END: usize = frame::DATAGRAM_OVERHEAD + GENERATION_LENGTH as usize;

/// The first eight bytes of the header at `offset`; 0 past the end.
fn head(bytes: &[u8], offset: usize) -> u64 {
    read_u64(bytes, offset).unwrap_or(0)
}

#[cfg(test)]
mod tests;
