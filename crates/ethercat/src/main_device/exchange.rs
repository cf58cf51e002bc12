//! Frames out and frames in: which are on their way, and which reply belongs to which.
//!
//! Every frame starts with a NOP datagram that carries a 32-bit generation number, which SubDevices pass
//! on unchanged. A reply belongs to a frame when index and generation match and every datagram has the
//! command, address and length that were sent. Each slot keeps its frame for that comparison, and for the next frame
//! in it, which is mostly the same. Eight bits of index alone come round again too soon: after
//! a long stall a MainDevice that trusts them takes old replies for new ones, for ever.

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use crate::link::MAXIMUM_FRAME_LENGTH;
use crate::time::Instant;
use crate::wire::ethernet::{PROCESSED_BIT, SOURCE_OFFSET};
use crate::wire::frame::{self, FrameError};
use crate::wire::{
    Address, Command, DatagramHeader, FrameBuilder, MacAddress, datagram, read_u16, read_u32, read_u64,
};

use super::report::{Reception, ReceptionCounters};

/// Frames on their way at the same time.
pub(super) const SLOTS: usize = 64;

/// Datagrams in a frame: each takes twelve bytes and at least one of data.
const DATAGRAMS: usize = 1500 / 13;

/// Offset of the address in a datagram's header.
const ADDRESS_OFFSET: usize = 2;

/// Bytes of the generation number.
const GENERATION_LENGTH: u16 = 4;

/// Frames whose generation numbers are known to be ours: a quarter of an hour at 1 kHz. Another MainDevice that
/// started at a random number has one of them by chance, one in four thousand.
const REMEMBERED: u64 = 1 << 20;

/// Owner of a datagram, who gets its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// Process data: the chunk's number, and which part of it the datagram carries.
    Chunk(u16, ChunkPart),
    /// The reference clock's system time, handed on to the others.
    ReferenceTime,
    /// AL status of all SubDevices.
    BusStatus,
    /// System time difference of the SubDevice at this position.
    ClockDifference(u16),
    /// Mail in the mailbox of the SubDevice at this position.
    MailboxStatus(u16),
    /// The bus-wide part of bring-up.
    Bus,
    /// The worker of the SubDevice at this position.
    Worker(u16),
}

/// Which part of a chunk a datagram carries.
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
    length: u16,
    /// Offset of its header in the frame: SubDevices change nothing about that.
    offset: u16,
    /// Receiver of the reply.
    pub(super) owner: Owner,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Unused,
    InFlight(Purpose),
    /// Answered or lost.
    Over,
}

/// A frame, kept as it was sent: the next one in this slot is mostly the same, and its reply is compared with it.
#[derive(Debug)]
struct Slot {
    state: SlotState,
    generation: u32,
    sent_at: Instant,
    /// Bytes of the frame.
    length: usize,
    frame: Vec<u8>,
    /// Those behind the generation number.
    datagrams: Vec<Sent>,
}

/// Generation numbers, and what became of them.
#[derive(Debug, Default)]
struct Numbers {
    /// The newest.
    generation: u32,
    /// Which of the newest were answered; the newest is the lowest bit.
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
    /// Replies marked as circulating count: who sits behind a port 0 without a link marks them.
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

    /// Offset of the header of the last of the first `count` datagrams; without one, the generation number's.
    fn last_of(&self, count: usize) -> usize {
        self.datagrams[..count].last().map_or(frame::DATAGRAMS_OFFSET, |sent| sent.offset.into())
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
            takes_circulating: true,
            takes_unchanged_source: false,
            unchanged_source: 0,
            reflected: 0,
            counters: ReceptionCounters::default(),
        }
    }

    /// The same, with generation numbers that go on from this one.
    pub(super) fn starting_at(self, generation: u32) -> Self {
        Self { numbers: Numbers { generation, ..self.numbers }, ..self }
    }

    /// Frames of this purpose that are on their way.
    pub(super) fn in_flight(&self, purpose: Purpose) -> usize {
        self.numbers.in_flight[purpose as usize]
    }

    /// Starts a frame for `buffer`, or `None` while all slots are on their way.
    ///
    /// Process data takes the first slot that is free, so that the frames of a cycle are found where the last cycle left
    /// them; all else takes the last.
    pub(super) fn open<'a>(&'a mut self, purpose: Purpose, buffer: &'a mut [u8]) -> Option<Outgoing<'a>> {
        let is_free = |&index: &usize| !matches!(self.slots[index].state, SlotState::InFlight(_));
        let index = match purpose {
            Purpose::ProcessData => (0..SLOTS).find(is_free)?,
            Purpose::Service => {
                let index = (0..SLOTS).rfind(is_free)?;
                self.slots[index].datagrams.clear();
                index
            }
        };
        let Self { slots, numbers, counters, .. } = self;
        Some(Outgoing {
            slot: slots.get_mut(index)?,
            numbers,
            counters,
            buffer,
            index,
            purpose,
            count: 0,
            is_new: false,
        })
    }

    /// Finds the frame that `bytes` answer. Counts and refuses everything else.
    pub(super) fn accept(&mut self, bytes: &[u8]) -> Result<(usize, Purpose), Reception> {
        let mut outcome = self.matching_slot(bytes);
        if bytes.get(SOURCE_OFFSET).is_some_and(|byte| byte & PROCESSED_BIT == 0) {
            outcome = self.unmarked(bytes, outcome);
        }
        match outcome {
            Ok((index, purpose)) => {
                let slot = &mut self.slots[index];
                slot.state = SlotState::Over;
                let age = self.numbers.generation.wrapping_sub(slot.generation);
                self.numbers.answered |= 1_u64.checked_shl(age).unwrap_or(0);
                self.numbers.in_flight[purpose as usize] -= 1;
                self.counters.accepted += 1;
            }
            Err(reception) => self.counters.count(reception),
        }
        outcome
    }

    /// Meaning of a frame that no SubDevice has marked: a reply of a segment that leaves the source address alone,
    /// where it shows that a SubDevice was passed; ours, sent back by a loop or a switch; or anybody's.
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
        let generation = read_u32(bytes, first + datagram::HEADER_LENGTH).unwrap_or(0);
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
            // Of an older frame, or of one that is over.
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

    /// The datagrams of a slot, taken out so that their owners can be served; [`Exchange::put_back`] them.
    pub(super) fn take_datagrams(&mut self, index: usize) -> Vec<Sent> {
        core::mem::take(&mut self.slots[index].datagrams)
    }

    pub(super) fn put_back(&mut self, index: usize, datagrams: Vec<Sent>) {
        self.slots[index].datagrams = datagrams;
    }

    /// The next frame of `purpose` that was sent at least `age` before `now`; it is lost from here on.
    pub(super) fn expire(&mut self, purpose: Purpose, now: Instant, age: Duration) -> Option<usize> {
        if self.numbers.in_flight[purpose as usize] == 0 {
            return None;
        }
        let is_expired =
            |slot: &Slot| slot.state == SlotState::InFlight(purpose) && now.since(slot.sent_at) >= age;
        let index = self.slots.iter().position(is_expired)?;
        self.slots[index].state = SlotState::Over;
        self.numbers.in_flight[purpose as usize] -= 1;
        self.counters.lost += 1;
        Some(index)
    }

    /// When the oldest frame of `purpose` was sent.
    pub(super) fn oldest(&self, purpose: Purpose) -> Option<Instant> {
        let in_flight = |slot: &&Slot| slot.state == SlotState::InFlight(purpose);
        self.slots.iter().filter(in_flight).map(|slot| slot.sent_at).min()
    }
}

impl Sent {
    /// Data and working counter in an accepted reply.
    pub(super) fn answer<'a>(&self, reply: &'a [u8]) -> (&'a [u8], u16) {
        let start = usize::from(self.offset) + datagram::HEADER_LENGTH;
        let end = self.working_counter();
        // Accepted means that every datagram stands where it was sent.
        (reply.get(start..end).unwrap_or_default(), read_u16(reply, end).unwrap_or(0))
    }

    fn working_counter(&self) -> usize {
        usize::from(self.offset) + datagram::HEADER_LENGTH + usize::from(self.length)
    }

    /// True if an accepted reply to `frame` shows that a SubDevice was passed: its working counter counts, or its
    /// position.
    fn is_touched(&self, frame: &[u8], reply: &[u8]) -> bool {
        let at = usize::from(self.offset);
        self.answer(reply).1 != 0 || (head(frame, at) ^ head(reply, at)) & ADDRESS != 0
    }
}

/// Parts of the first eight bytes of a datagram's header, read as one little-endian number (ETG.1000.4, 5.4.1).
const COMMAND: u64 = 0xFF;
const INDEX: u64 = 0xFF << 8;
const POSITION: u64 = 0xFFFF << 16;
const ADDRESS: u64 = 0xFFFF_FFFF << 16;
const LENGTH: u64 = 0x07FF << 48;
const CIRCULATING: u64 = 1 << 62;
const MORE_FOLLOWS: u64 = 1 << 63;

/// Mask of the header bits that SubDevices leave unchanged in a datagram of `command`. They count the position up in auto-increment and
/// broadcast commands; station and logical addresses come back as sent.
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
const GENERATION_END: usize = frame::DATAGRAM_OVERHEAD + GENERATION_LENGTH as usize;

/// The first eight bytes of the header at `offset`; 0 past the end.
fn head(bytes: &[u8], offset: usize) -> u64 {
    read_u64(bytes, offset).unwrap_or(0)
}

/// A frame being filled.
pub(super) struct Outgoing<'a> {
    slot: &'a mut Slot,
    numbers: &'a mut Numbers,
    counters: &'a mut ReceptionCounters,
    buffer: &'a mut [u8],
    index: usize,
    purpose: Purpose,
    /// Datagrams so far, of those that stand in the slot.
    count: usize,
    /// The last of them was not there before: none stands behind it.
    is_new: bool,
}

impl Outgoing<'_> {
    /// Appends a datagram of `length` bytes and returns them, or `None` if it does not fit. They are zeroed, or where
    /// `owner` wrote to them before, as he left them.
    pub(super) fn push(
        &mut self,
        command: Command,
        address: Address,
        length: usize,
        owner: Owner,
    ) -> Option<&mut [u8]> {
        if !self.stands_already(command, address, length, owner) {
            self.build(command, address, length, owner)?;
        }
        let sent = self.slot.datagrams[self.count];
        self.count += 1;
        self.slot.frame.get_mut(usize::from(sent.offset) + datagram::HEADER_LENGTH..sent.working_counter())
    }

    /// True if such a datagram stands in its place; all that it then takes is the address.
    fn stands_already(&mut self, command: Command, address: Address, length: usize, owner: Owner) -> bool {
        let Some(sent) = self.slot.datagrams.get_mut(self.count) else { return false };
        let at = usize::from(sent.offset);
        let Some(there) = self.slot.frame.get_mut(at..at + datagram::HEADER_LENGTH) else { return false };
        let is_alike = there[0] == command.number() && usize::from(sent.length) == length;
        // What one wrote is no other's.
        if !is_alike || command.writes() && sent.owner != owner {
            return false;
        }
        there[ADDRESS_OFFSET..ADDRESS_OFFSET + 4].copy_from_slice(&address.raw().to_le_bytes());
        sent.owner = owner;
        true
    }

    /// Puts a new datagram in the place of all that follow.
    #[cold]
    fn build(&mut self, command: Command, address: Address, length: usize, owner: Owner) -> Option<()> {
        let (slot, length) = (&mut *self.slot, u16::try_from(length).ok()?);
        if self.count == slot.datagrams.capacity() {
            return None;
        }
        let header = DatagramHeader::new(command, self.index as u8, address, length);
        let last = slot.last_of(self.count);
        let room = self.buffer.len().min(slot.frame.len());
        let place = FrameBuilder::resume(&mut slot.frame[..room], last)?.push(header)?;
        slot.datagrams.truncate(self.count);
        slot.datagrams.push(Sent { fixed: fixed(command), length, offset: place.offset as u16, owner });
        self.is_new = true;
        Some(())
    }

    /// Puts the frame on its way and returns its length, or `None` if no datagram was appended.
    pub(super) fn send(self, now: Instant) -> Option<usize> {
        let Self { slot, numbers, .. } = self;
        if self.count == 0 {
            return None;
        }
        if self.is_new || self.count < slot.datagrams.len() {
            let last = slot.last_of(self.count);
            slot.datagrams.truncate(self.count);
            slot.length = FrameBuilder::resume(&mut slot.frame, last)?.finish();
        }
        let out = self.buffer.get_mut(..slot.length)?;
        numbers.generation = numbers.generation.wrapping_add(1);
        numbers.answered <<= 1;
        numbers.in_flight[self.purpose as usize] += 1;
        slot.generation = numbers.generation;
        slot.state = SlotState::InFlight(self.purpose);
        slot.sent_at = now;
        self.counters.sent += 1;
        let at = frame::DATAGRAMS_OFFSET + datagram::HEADER_LENGTH;
        slot.frame[at..at + 4].copy_from_slice(&slot.generation.to_le_bytes());
        out.copy_from_slice(&slot.frame[..slot.length]);
        Some(slot.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends one frame and returns it as a SubDevice at position 0 would send it back.
    fn sent_frame(exchange: &mut Exchange) -> Vec<u8> {
        let mut buffer = vec![0; 1514];
        let mut outgoing = exchange.open(Purpose::ProcessData, &mut buffer).unwrap();
        outgoing.push(Command::Brd, Address::Broadcast { register: 0x130 }, 2, Owner::BusStatus).unwrap();
        outgoing
            .push(Command::Lrw, Address::Logical(0x1_0000), 8, Owner::Chunk(0, ChunkPart::Both))
            .unwrap();
        let length = outgoing.send(Instant::EPOCH).unwrap();
        buffer.truncate(length);
        buffer[6] |= 0x02;
        buffer[32 + 2] += 1; // the broadcast's position counts up
        buffer
    }

    #[test]
    fn a_reply_is_accepted_once() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        let frame = sent_frame(&mut exchange);
        assert_eq!(exchange.in_flight(Purpose::ProcessData), 1);
        assert_eq!(exchange.accept(&frame), Ok((0, Purpose::ProcessData)));
        assert_eq!(exchange.accept(&frame), Err(Reception::Duplicate));
        assert_eq!(exchange.in_flight(Purpose::ProcessData), 0);
        assert_eq!((exchange.counters.accepted, exchange.counters.duplicate), (1, 1));
    }

    // feature(main-device): a duplicate is told from a late reply though its slot is in use again
    #[test]
    fn a_duplicate_is_known_when_its_slot_has_long_been_in_use_again() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        let lost = sent_frame(&mut exchange);
        assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
        let answered = sent_frame(&mut exchange);
        assert!(exchange.accept(&answered).is_ok());
        for _ in 0..60 {
            let newest = sent_frame(&mut exchange);
            assert_eq!(exchange.accept(&answered), Err(Reception::Duplicate));
            assert_eq!(exchange.accept(&lost), Err(Reception::Late));
            assert_eq!(exchange.accept(&newest), Ok((0, Purpose::ProcessData)), "it has the same slot");
        }
    }

    /// Bytes of a frame of these datagrams. Writers leave half of what they may write as it is.
    fn built(exchange: &mut Exchange, datagrams: &[(Command, Address, usize, Owner)]) -> Vec<u8> {
        let mut buffer = vec![0xEE; 1514];
        let mut outgoing = exchange.open(Purpose::ProcessData, &mut buffer).unwrap();
        for &(command, address, length, owner) in datagrams {
            let data = outgoing.push(command, address, length, owner).unwrap();
            if let Owner::Chunk(chunk, _) = owner {
                data[..(length / 2) >> chunk].fill(0xA5);
            }
        }
        let length = outgoing.send(Instant::EPOCH).unwrap();
        buffer.truncate(length);
        buffer
    }

    // feature(main-device): frames stay prebuilt, and are the same as if built anew
    #[test]
    fn a_frame_is_the_same_whatever_stood_in_its_slot_before() {
        let lrw = |length, chunk| {
            let owner = Owner::Chunk(chunk, ChunkPart::Both);
            (Command::Lrw, Address::Logical(0x1_0000 + u32::from(chunk)), length, owner)
        };
        let status = (Command::Brd, Address::Broadcast { register: 0x130 }, 2, Owner::BusStatus);
        let mail = |station| {
            let address = Address::Station { station, register: 0x80D };
            (Command::Fprd, address, 1, Owner::MailboxStatus(station))
        };
        let frames = [
            vec![status, mail(1), lrw(8, 0)],
            vec![status, mail(2), lrw(8, 0)],
            vec![status, lrw(8, 0)],
            vec![status, mail(1), lrw(80, 0), lrw(8, 1)],
            vec![status, mail(1), lrw(80, 1)],
            vec![status],
            vec![lrw(8, 1), status, mail(1)],
            vec![lrw(8, 0), status],
        ];
        let mut kept = Exchange::new(MacAddress::MAIN_DEVICE);
        let each_behind_each =
            frames.iter().flat_map(|first| frames.iter().flat_map(move |it| [first, it]));
        for (number, datagrams) in each_behind_each.enumerate() {
            let mut fresh = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(number as u32);
            let mut frame = built(&mut kept, datagrams);
            assert_eq!(frame, built(&mut fresh, datagrams), "frame {number}");
            frame[SOURCE_OFFSET] |= PROCESSED_BIT;
            assert_eq!(kept.accept(&frame), Ok((0, Purpose::ProcessData)), "frame {number}");
        }
    }

    // feature(main-device): a reply that is too late stays lost, however often its index comes round
    #[test]
    fn a_lost_frame_stays_lost_however_late_its_reply() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        let frame = sent_frame(&mut exchange);
        assert!(exchange.expire(Purpose::ProcessData, Instant::EPOCH, Duration::ZERO).is_some());
        assert_eq!(exchange.accept(&frame), Err(Reception::Late));
        // The same slot again, many frames later: same index, same datagrams, another generation.
        for _ in 0..SLOTS {
            sent_frame(&mut exchange);
        }
        assert_eq!(exchange.accept(&frame), Err(Reception::Late));
        assert_eq!(exchange.in_flight(Purpose::ProcessData), SLOTS);
        assert!(exchange.open(Purpose::ProcessData, &mut [0; 1514]).is_none(), "all slots are out");
    }

    // feature(main-device): another MainDevice's replies are a kind of their own, never ours, told once
    #[test]
    fn the_reply_to_another_main_device_is_never_taken_for_ours() {
        let mut ours = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0xFFFF_FFF0);
        let mut other = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0x1234_5678);
        for sent in 1..=3 * SLOTS as u64 {
            let (own, foreign) = (sent_frame(&mut ours), sent_frame(&mut other));
            assert_eq!(ours.accept(&foreign), Err(Reception::OtherMainDevice));
            assert!(ours.accept(&own).is_ok() && other.accept(&foreign).is_ok(), "frame {sent}");
            assert_eq!(ours.accept(&own), Err(Reception::Duplicate));
            assert_eq!(ours.counters.other_main_device, sent);
        }
    }

    // feature(main-device): own frames that are played again are late
    #[test]
    fn own_frames_that_are_played_again_are_late_however_many_were_sent_since() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE).starting_at(0xFFFF_FF00);
        let first = sent_frame(&mut exchange);
        assert!(exchange.accept(&first).is_ok());
        for _ in 0..1000 {
            let frame = sent_frame(&mut exchange);
            exchange.accept(&frame).unwrap();
            let played_again = exchange.accept(&first).unwrap_err();
            assert!(matches!(played_again, Reception::Late | Reception::Duplicate), "{played_again:?}");
        }
        assert_eq!(exchange.counters.other_main_device, 0);
    }

    #[test]
    fn a_processed_frame_without_a_generation_is_another_main_devices() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        sent_frame(&mut exchange);
        let mut frame = vec![0; 60];
        let mut builder = FrameBuilder::new(&mut frame, MacAddress([0x02, 1, 2, 3, 4, 5]));
        let brd = DatagramHeader::new(Command::Brd, 0, Address::Broadcast { register: 0x130 }, 2);
        builder.push(brd).unwrap();
        let length = builder.finish();
        assert_eq!(exchange.accept(&frame[..length]), Err(Reception::OtherMainDevice));
        frame[SOURCE_OFFSET] = 0;
        assert_eq!(exchange.accept(&frame[..length]), Err(Reception::Foreign), "not processed");
    }

    // feature(main-device): replies matched on index, command, address, length and generation
    #[test]
    fn each_thing_that_must_match_is_compared() {
        let original = sent_frame(&mut Exchange::new(MacAddress::MAIN_DEVICE));
        let brd = 32;
        let lrw = brd + 14;
        let changed = [
            (6, 0x02, Reception::Foreign),          // never passed an ESC
            (brd, 0x01, Reception::Mismatched),     // command
            (brd + 1, 0x01, Reception::Mismatched), // index
            (brd + 4, 0x01, Reception::Mismatched), // register
            (lrw + 2, 0x01, Reception::Mismatched), // logical address
            (lrw + 7, 0x40, Reception::Mismatched), // circulating
            (26, 0x01, Reception::OtherMainDevice), // generation
            (17, 0x01, Reception::Mismatched),      // index of the slot
        ];
        for (byte, flip, expected) in changed {
            let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
            exchange.takes_circulating = false;
            let mut frame = sent_frame(&mut exchange);
            assert_eq!(frame, original);
            frame[byte] ^= flip;
            assert_eq!(exchange.accept(&frame), Err(expected), "byte {byte}");
        }
    }

    /// A segment that leaves the source address alone, and a plug that sends everything back.
    #[test]
    fn an_unmarked_reply_counts_where_it_is_asked_for_and_a_reflection_nowhere() {
        let lrw_counter = 32 + 14 + 18;
        for asked_for in [false, true] {
            let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
            exchange.takes_unchanged_source = asked_for;
            let mut frame = sent_frame(&mut exchange);
            frame[6] &= !0x02;
            frame[32 + 2] = 0;
            assert_eq!(exchange.accept(&frame), Err(Reception::Foreign), "nobody has touched it");
            assert_eq!((exchange.reflected, exchange.unchanged_source), (1, 0));
            let mut stranger = frame.clone();
            stranger[11] ^= 1;
            assert_eq!(exchange.accept(&stranger), Err(Reception::Foreign), "of another source");
            // A counted position is enough, and so is a working counter.
            let mut passed = frame.clone();
            passed[32 + 2] = 1;
            frame[lrw_counter] = 3;
            let found = [passed, frame].map(|frame| exchange.accept(&frame));
            let expected = match asked_for {
                true => [Ok((0, Purpose::ProcessData)), Err(Reception::Duplicate)],
                false => [Err(Reception::Foreign); 2],
            };
            assert_eq!(found, expected);
            assert_eq!(exchange.reflected, 1);
            assert!(exchange.unchanged_source > 0);
        }
    }

    #[test]
    fn a_truncated_reply_is_refused_at_every_length() {
        let mut exchange = Exchange::new(MacAddress::MAIN_DEVICE);
        let frame = sent_frame(&mut exchange);
        let unpadded = 32 + 14 + 20;
        for length in 0..unpadded {
            assert!(exchange.accept(&frame[..length]).is_err(), "cut at {length}");
        }
        assert!(exchange.accept(&frame[..unpadded]).is_ok());
    }
}
