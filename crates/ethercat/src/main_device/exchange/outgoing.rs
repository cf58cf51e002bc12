//! A frame on its way out: a slot and a number for it. The datagrams in the slot stay, and take new
//! addresses and data.

use core::ops::Range;

use crate::register;
use crate::time::Instant;
use crate::wire::frame::DATAGRAM_OVERHEAD;
use crate::wire::{Address, Command, DatagramHeader, FrameBuilder, datagram, frame};

use super::{
    Exchange, GENERATION_AT, GENERATION_END, Numbers, Owner, Purpose, ReceptionCounters, ReplyTime, SLOTS,
    Sent, Slot, SlotState, Tail, fixed,
};

/// Room for a datagram of 16 bytes: most of the bring-up's are shorter.
const HARDLY_ANY: usize = datagram::HEADER_LENGTH + 16 + datagram::WORKING_COUNTER_LENGTH;

/// Offset of the address in a datagram's header.
const ADDRESS_OFFSET: usize = 2;

/// A frame being filled.
pub(in super::super) struct Outgoing<'a> {
    slot: &'a mut Slot,
    numbers: &'a mut Numbers,
    counters: &'a mut ReceptionCounters,
    reply_time: &'a mut ReplyTime,
    index: usize,
    purpose: Purpose,
    /// Datagrams of the slot that are in use so far.
    count: usize,
    /// Of these, datagrams that only show that the frame has passed a SubDevice.
    proofs: usize,
    /// The last of them is new: there is none behind it.
    is_new: bool,
    /// Bytes of the frame beyond which only its first datagram may reach.
    pub(in super::super) limit: usize,
    /// A datagram did not fit.
    pub(in super::super) is_full: bool,
}

impl Exchange {
    /// Process data takes the first free slot, so that the frames of a cycle are found where the
    /// last cycle left them; other frames take the last one.
    ///
    /// Process data takes the first slot that is free, so that the frames of a cycle are found
    /// where the last cycle left them; all else takes the last.
    pub(in super::super) fn open(&mut self, purpose: Purpose) -> Option<Outgoing<'_>> {
        let is_free = |&index: &usize| !matches!(self.slots[index].state, SlotState::InFlight(_));
        let index = match purpose {
            Purpose::ProcessData => (0..SLOTS).find(is_free)?,
            Purpose::Service if self.in_flight(purpose) >= self.services => return None,
            Purpose::Service => {
                let index = (0..SLOTS).rfind(is_free)?;
                self.slots[index].datagrams.clear();
                index
            }
        };
        let Self { slots, numbers, counters, reply_time, .. } = self;
        Some(Outgoing {
            slot: slots.get_mut(index)?,
            numbers,
            counters,
            reply_time,
            index,
            purpose,
            count: 0,
            proofs: 0,
            is_new: false,
            limit: usize::MAX,
            is_full: false,
        })
    }

    /// Sends the process data frame in this slot once more, after a call of `change` with its
    /// bytes; `None` while it is on its way, or if the slot has another frame.
    #[inline(always)]
    pub(in super::super) fn send_again(
        &mut self,
        index: usize,
        now: Instant,
        change: impl FnOnce(&mut [u8]) -> Option<()>,
    ) -> Option<()> {
        let slot = self.slots.get_mut(index)?;
        if slot.state != SlotState::Over(Purpose::ProcessData) {
            return None;
        }
        change(&mut slot.frame)?;
        slot.leave(Purpose::ProcessData, now, &mut self.numbers, &mut self.counters)
    }
}

impl Outgoing<'_> {
    /// Appends a datagram of `length` bytes and returns them, or `None` if it does not fit. The
    /// bytes are zero, or as `owner` left them if it wrote to them before.
    pub(in super::super) fn push(
        &mut self,
        command: Command,
        address: Address,
        length: usize,
        owner: Owner,
    ) -> Option<&mut [u8]> {
        if self.is_beyond(length) {
            self.is_full = true;
            return None;
        }
        if !self.place(command, address, length, owner) {
            let is_first = self.count == self.proofs && self.proofs > 0;
            if !is_first || !self.place_without_proof(command, address, length, owner) {
                self.is_full = true;
                return None;
            }
        }
        let sent = self.slot.datagrams[self.count];
        self.count += 1;
        sent.data(&mut self.slot.frame)
    }

    /// Starts the frame with a broadcast read that every SubDevice counts in, with or without an
    /// address. A reply with an unchanged source address then shows whether it has passed a
    /// SubDevice.
    pub(in super::super) fn prove_passage(&mut self) {
        let address = Address::Broadcast { register: register::TYPE };
        if self.place(Command::Brd, address, 1, Owner::Passage) {
            self.count += 1;
            self.proofs = self.count;
        }
    }

    /// Places the next datagram; false if the frame has no space for it.
    fn place(&mut self, command: Command, address: Address, length: usize, owner: Owner) -> bool {
        self.reuse_datagram(command, address, length, owner)
            || self.build(command, address, length, owner).is_some()
    }

    /// The same for a datagram that fills a frame alone: it takes the place of the broadcast read.
    #[cold]
    fn place_without_proof(
        &mut self,
        command: Command,
        address: Address,
        length: usize,
        owner: Owner,
    ) -> bool {
        (self.count, self.proofs) = (0, 0);
        self.build(command, address, length, owner).is_some()
    }

    /// True if a datagram of `length` bytes would reach beyond the limit, and is not the first.
    fn is_beyond(&self, length: usize) -> bool {
        let before = self.count.checked_sub(1).filter(|_| self.count > self.proofs);
        before.and_then(|last| self.slot.datagrams.get(last)).is_some_and(|it| {
            it.working_counter() + datagram::WORKING_COUNTER_LENGTH + DATAGRAM_OVERHEAD + length
                > self.limit
        })
    }

    /// True if hardly another datagram fits: the rest of a list may wait for the next frame.
    pub(in super::super) fn has_hardly_room(&self) -> bool {
        let limit = if self.count == self.proofs { usize::MAX } else { self.limit };
        let used = self.slot.last_of(self.count).end;
        self.count >= self.slot.datagrams.capacity() || used + HARDLY_ANY > self.slot.frame.len().min(limit)
    }

    /// Writes the address alone if such a datagram is already at this offset; false if it is not.
    fn reuse_datagram(&mut self, command: Command, address: Address, length: usize, owner: Owner) -> bool {
        let Some(sent) = self.slot.datagrams.get_mut(self.count) else { return false };
        let at = usize::from(sent.offset);
        let Some(there) = self.slot.frame.get_mut(at..at + datagram::HEADER_LENGTH) else { return false };
        let is_alike = there[0] == command.number() && sent.length() == length;
        // What one wrote is no other's.
        if !is_alike || command.writes() && sent.owner != owner {
            return false;
        }
        there[ADDRESS_OFFSET..ADDRESS_OFFSET + 4].copy_from_slice(&address.raw().to_le_bytes());
        sent.owner = owner;
        true
    }

    /// Writes a new datagram over all that follow.
    #[cold]
    fn build(&mut self, command: Command, address: Address, length: usize, owner: Owner) -> Option<()> {
        let (slot, length) = (&mut *self.slot, u16::try_from(length).ok()?);
        if self.count == slot.datagrams.capacity() {
            return None;
        }
        let header = DatagramHeader::new(command, self.index as u8, address, length);
        let last = slot.last_of(self.count);
        let place = FrameBuilder::resume(&mut slot.frame, last)?.push(header)?;
        slot.datagrams.truncate(self.count);
        let (fixed, usual, offset) = (fixed(command), Tail::default(), place.offset as u16);
        let working_counter = offset + datagram::HEADER_LENGTH as u16 + length;
        slot.datagrams.push(Sent { fixed, usual, offset, working_counter, owner });
        self.is_new = true;
        Some(())
    }

    /// Puts the frame on its way and returns its slot, or `None` if no datagram was appended.
    pub(in super::super) fn send(self, now: Instant) -> Option<usize> {
        let Self { slot, numbers, counters, .. } = self;
        if self.count == self.proofs {
            return None;
        }
        if self.is_new || self.count < slot.datagrams.len() {
            let last = slot.last_of(self.count);
            slot.datagrams.truncate(self.count);
            slot.length = FrameBuilder::resume(&mut slot.frame, last)?.finish();
        }
        slot.leave(self.purpose, now, numbers, counters)?;
        if self.purpose == Purpose::Service {
            self.reply_time.sent(slot.generation, now);
        }
        Some(self.index)
    }
}

impl Sent {
    /// Its data in the frame.
    pub(in super::super) fn data<'a>(&self, frame: &'a mut [u8]) -> Option<&'a mut [u8]> {
        frame.get_mut(self.data_offset()..self.working_counter())
    }

    /// Offset of the station address in its header.
    pub(in super::super) fn station_offset(&self) -> u16 {
        self.offset + ADDRESS_OFFSET as u16
    }
}

impl Slot {
    /// Its frame is on its way from here on, with the next generation number.
    #[inline(always)]
    fn leave(
        &mut self,
        purpose: Purpose,
        now: Instant,
        numbers: &mut Numbers,
        counters: &mut ReceptionCounters,
    ) -> Option<()> {
        let number = self.frame.get_mut(GENERATION_AT..GENERATION_AT + 4)?;
        numbers.generation = numbers.generation.wrapping_add(1);
        numbers.answered <<= 1;
        numbers.in_flight[purpose as usize] += 1;
        number.copy_from_slice(&numbers.generation.to_le_bytes());
        self.generation = numbers.generation;
        self.state = SlotState::InFlight(purpose);
        self.sent_at = now;
        counters.sent += 1;
        Some(())
    }

    /// Place of the last of the first `count` datagrams; without one, the generation number's.
    fn last_of(&self, count: usize) -> Range<usize> {
        let generation = frame::DATAGRAMS_OFFSET..frame::DATAGRAMS_OFFSET + GENERATION_END;
        self.datagrams[..count].last().map_or(generation, |sent| {
            sent.offset.into()..sent.working_counter() + datagram::WORKING_COUNTER_LENGTH
        })
    }
}
