//! One cycle: process data, and the datagrams sent along with it.

mod again;
mod polled;
mod state;

use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use types::WorkingCounter;

use crate::al::AlState;
use crate::register::{self, FmmuDirection, SyncManager, dc, sync_manager};
use crate::time::Instant;
use crate::wire::{Address, Command};

use super::MainDevice;
use super::exchange::{ChunkPart, Outgoing, Owner, Purpose};
use super::layout::{AROUND_A_FRAME, CHUNK_CAPACITY, Chunk, Layout};
use super::report::{BringUpPhase, CycleReport};
use super::sub_device::station_address;

use again::{Again, Placed};
use polled::Polled;
use state::{CutInputs, Member, Participants, Replies, Sending, SlowExchanges};

/// Process data, and the progress of the cycle.
#[derive(Debug, Default)]
pub(super) struct Cyclic {
    pub(super) layout: Layout,
    pub(super) outputs: Vec<u8>,
    pub(super) inputs: Vec<u8>,
    /// The datagrams of this cycle have the spread layout.
    spread: bool,
    /// The datagrams of the next cycle have it.
    spread_next: bool,
    /// Cycles are being made.
    pub(super) running: bool,
    pub(super) sending: Sending,
    pub(super) replies: Replies,
    pub(super) participants: Participants,
    slow: SlowExchanges,
    /// Some inputs take more than one datagram.
    has_cut: bool,
    cut: CutInputs,
    /// SubDevices polled for their clock difference and for mail, one of each in a cycle.
    pub(super) clocks: Polled,
    pub(super) mailboxes: Polled,
    again: Option<Again>,
    /// Of each chunk, in the frame that is sent again.
    placed: Vec<Placed>,
}

/// SubDevices in bring-up for each service frame of a cycle, if the wire has the time in addition
/// to process data; in Op there is one frame.
pub(super) const SUB_DEVICES_A_SERVICE: usize = 64;

/// Consecutive complete cycles that end the spread layout: with a loose contact, all SubDevices
/// would lose inputs again and again.
const WHOLE_AGAIN: u32 = 10;

impl Cyclic {
    /// Takes over a layout, and the group of each by position; all outputs are zero.
    pub(super) fn set_layout(&mut self, layout: Layout, groups: &[Option<u16>]) {
        self.outputs = vec![0; layout.output_bytes];
        self.inputs = vec![0; layout.input_bytes];
        self.replies.received = vec![[None; 2]; layout.chunks.len().max(layout.spread.len())];
        self.sending.is_due = false;
        self.participants.members =
            groups.iter().map(|&group| Member { group, ..Member::default() }).collect();
        for share in layout.pieces.iter().map(|it| it.share) {
            let member = &mut self.participants.members[usize::from(share.position)];
            let is_output = share.direction == FmmuDirection::Write;
            member.has_outputs |= is_output;
            member.has_inputs |= !is_output;
            member.every = share.every;
            member.is_cut |= !is_output && share.bits > CHUNK_CAPACITY * 8;
        }
        self.participants.absent = 0;
        self.replies.datagrams =
            [&layout.chunks, &layout.spread].map(|it| it.iter().flat_map(parts).count());
        self.has_cut = self.participants.members.iter().any(|it| it.is_cut);
        self.slow.any = self.participants.members.iter().any(|it| it.every > 1);
        self.slow.due = vec![true; self.replies.received.len()];
        self.placed = vec![Placed::default(); layout.chunks.len()];
        self.participants.groups =
            vec![[false; 3]; groups.iter().flatten().max().map_or(0, |&last| last.into()) + 1];
        self.layout = layout;
    }

    /// Counts the SubDevice at `position`, or leaves it out, in working counters and complete
    /// cycles.
    pub(super) fn count(&mut self, position: u16, is_there: bool) {
        self.write_down();
        let Some(member) = self.participants.members.get_mut(usize::from(position)) else { return };
        if member.is_absent != is_there {
            return;
        }
        self.participants.complete = false;
        member.is_absent = !is_there;
        self.participants.absent =
            if is_there { self.participants.absent - 1 } else { self.participants.absent + 1 };
        // Between its positions a datagram may have SubDevices that others carry.
        let every = member.every;
        let carries = |it: &Chunk| it.every == every && it.positions.contains(&position);
        let Layout { chunks, spread, .. } = &mut self.layout;
        for chunk in chunks.iter_mut().chain(spread).filter(|it| carries(it)) {
            let writes = u16::from(member.has_outputs && chunk.output_bytes() > 0);
            let reads = u16::from(member.has_inputs && chunk.input_bytes() > 0);
            (chunk.writers, chunk.readers) = match is_there {
                true => (chunk.writers + writes, chunk.readers + reads),
                false => (chunk.writers - writes, chunk.readers - reads),
            };
        }
        if is_there {
            // Inputs that came in before it was counted were not taken: they are fresh from the
            // next exchange on.
            let chunks = self.layout.chunks(self.spread).iter().zip(&mut self.replies.received);
            chunks.filter(|(it, _)| carries(it)).for_each(|(_, received)| *received = [None; 2]);
        }
    }

    /// A process data datagram came back. Inputs count only if all in it put theirs in.
    #[inline(never)]
    pub(super) fn receive(&mut self, chunk: u16, part: ChunkPart, data: &[u8], working_counter: u16) {
        let number = usize::from(chunk);
        let chunk = &self.layout.chunks(self.spread)[number];
        self.replies.received[number][usize::from(part == ChunkPart::Inputs)] = Some(working_counter);
        if chunk.is_cut {
            self.cut.came(number as u16);
        }
        if working_counter != expected(chunk, part) {
            return;
        }
        self.replies.whole_datagrams += 1;
        if part == ChunkPart::Outputs {
            return;
        }
        let start = if part == ChunkPart::Both { chunk.output_bytes() } else { 0 };
        chunk.take_inputs(&data[start..], &mut self.inputs);
    }

    /// True if the inputs of the SubDevice at `position` came in with the cycle that has ended, and
    /// its group's.
    pub(super) fn is_fresh(&self, position: usize) -> bool {
        self.running
            && self
                .participants
                .members
                .get(position)
                .is_some_and(|it| self.participants.all.unwrap_or(it.fresh))
    }

    /// True if the outputs of the SubDevice at `position` were taken in the cycle that has ended,
    /// and its group's.
    pub(super) fn is_taken(&self, position: usize) -> bool {
        self.running
            && self
                .participants
                .members
                .get(position)
                .is_some_and(|it| self.participants.all.unwrap_or(it.taken))
    }

    /// True if the SubDevice at `position` is there, and another of its group is absent.
    pub(super) fn waits(&self, position: usize) -> bool {
        self.participants.absent > 0 && self.participants.members.get(position).is_some_and(|it| it.waits)
    }

    /// A reply came that is late or a duplicate: its request may have opened buffers.
    pub(super) fn disturbed(&mut self) {
        self.cut.disturbed = true;
    }

    /// Restarts the count of complete cycles.
    pub(super) fn forget_whole_cycles(&mut self) {
        self.replies.whole_cycles = 0;
    }

    /// True if the last `cycles` cycles were complete, none of them spread.
    pub(super) fn has_been_whole(&self, cycles: u32) -> bool {
        !self.spread && self.replies.whole_cycles >= cycles
    }

    pub(super) fn working_counters(&self) -> impl Iterator<Item = WorkingCounter> {
        let as_expected = self.replies.all_as_expected;
        self.layout.chunks(self.spread).iter().zip(&self.replies.received).flat_map(
            move |(chunk, received)| {
                parts(chunk).map(move |part| {
                    let (expected, received) =
                        (expected(chunk, part), received[usize::from(part == ChunkPart::Inputs)]);
                    WorkingCounter {
                        expected,
                        received: if as_expected { Some(expected) } else { received },
                    }
                })
            },
        )
    }

    /// Sets the time between two cycles of a layout that was set.
    pub(super) fn set_period(&mut self, period: Duration) {
        let wanted = self.participants.members.len().div_ceil(SUB_DEVICES_A_SERVICE) as u16;
        self.sending.services_on_the_way = self.layout.spare_frames(period).min(wanted).max(1);
    }

    /// No cycles are made.
    pub(super) fn stop(&mut self) {
        (self.running, self.sending.is_due) = (false, false);
        self.write_down();
    }

    fn begin(&mut self, is_on_the_way: bool) {
        self.running = true;
        let is_other = core::mem::replace(&mut self.spread, self.spread_next) != self.spread_next;
        self.sending.is_due = true;
        self.open();
        self.sending.services = if is_on_the_way { self.sending.services_on_the_way } else { 1 };
        self.participants.all = Some(false);
        if self.has_cut {
            self.begin_cut();
        }
        self.cut = CutInputs::default();
        if self.slow.any {
            self.find_due(is_other);
            return;
        }
        if !core::mem::take(&mut self.replies.all_as_expected) {
            self.forget_received();
        }
    }

    #[cold]
    fn forget_received(&mut self) {
        // The entries behind belong to a layout with more chunks.
        let count = self.layout.chunks(self.spread).len();
        self.replies.received.iter_mut().take(count).for_each(|it| *it = [None; 2]);
    }

    /// Nothing has been sent in this cycle.
    fn open(&mut self) {
        (self.sending.is_open, self.sending.riders_due) = (true, true);
        self.sending.next_datagram = (0, ChunkPart::Both);
        (self.sending.frames_sent, self.sending.bytes_sent) = (0, 0);
        self.replies.whole_datagrams = 0;
    }

    /// Records the members whose buffers the previous cycle has closed.
    #[cold]
    fn begin_cut(&mut self) {
        for member in &mut self.participants.members {
            member.closed_before = member.is_complete && !self.cut.disturbed;
            member.is_complete = false;
        }
    }

    /// Finds the chunks of this cycle: the scheduled ones, and the ones whose last exchange was
    /// incomplete. The others keep the data that came back last.
    #[cold]
    fn find_due(&mut self, is_other_layout: bool) {
        if is_other_layout {
            self.replies.received.fill([None; 2]);
        }
        self.slow.number = self.slow.number.wrapping_add(1);
        let chunks = self.layout.chunks(self.spread).iter();
        for ((chunk, received), due) in chunks.zip(&mut self.replies.received).zip(&mut self.slow.due) {
            let came = |part| received[usize::from(part == ChunkPart::Inputs)];
            let is_whole = parts(chunk).all(|part| came(part) == Some(expected(chunk, part)));
            *due = !is_whole || self.slow.number % u64::from(chunk.every) == 0;
            if *due {
                *received = [None; 2];
            }
        }
    }

    /// Evaluates a cycle in which `lost` frames were lost: which data has come back, and the layout
    /// of the next cycle. Returns whether all has, and the number of wrong working counters.
    fn end(&mut self, lost: u16, may_spread: bool) -> (bool, u16) {
        let is_whole = self.is_whole();
        self.participants.all = is_whole.then_some(true);
        let (all, wrong) = if is_whole { (true, 0) } else { self.end_of_each() };
        let all_fresh = all && lost == 0;
        self.replies.whole_cycles = self.replies.whole_cycles.saturating_add(1);
        self.replies.short = None;
        if !all_fresh {
            self.replies.whole_cycles = 0;
            self.replies.short = self.find_short();
        }
        self.spread_next = match self.spread {
            true => self.participants.joining || self.replies.whole_cycles < WHOLE_AGAIN,
            false => may_spread && (self.participants.joining || wrong > 0),
        };
        if self.spread_next != self.spread {
            self.replies.whole_cycles = 0;
        }
        (all_fresh, wrong)
    }

    /// True if all datagrams are complete, as in most cycles: found without a look at the members.
    /// Cut inputs need that look.
    fn is_whole(&self) -> bool {
        let each_for_itself = self.has_cut || self.slow.any || self.participants.absent > 0;
        !each_for_itself && self.replies.whole_datagrams == self.replies.datagrams[usize::from(self.spread)]
    }

    /// True if the members record participation in a cycle with the expected reply, or all take
    /// part.
    fn is_known_of_each(&self) -> bool {
        self.participants.absent == 0 || self.participants.complete
    }

    /// The first datagram in which a part is missing.
    #[cold]
    fn find_short(&self) -> Option<(usize, WorkingCounter)> {
        self.working_counters().enumerate().find(|(_, it)| !it.is_complete())
    }

    /// Finds the SubDevices that took part in the cycle. Returns whether all did, and the number of
    /// datagrams in which one is missing.
    #[cold]
    fn end_of_each(&mut self) -> (bool, u16) {
        let (undisturbed, mut wrong) = (!self.cut.disturbed, 0);
        for member in &mut self.participants.members {
            (member.is_complete, member.taken) = (!member.is_absent, !member.is_absent);
        }
        let chunks = self.layout.chunks(self.spread).iter().zip(&self.replies.received);
        for (chunk, received) in chunks {
            for part in parts(chunk) {
                let received = received[usize::from(part == ChunkPart::Inputs)];
                if received == Some(expected(chunk, part)) {
                    continue;
                }
                let positions = usize::from(chunk.positions.start)..usize::from(chunk.positions.end);
                let members = &mut self.participants.members[positions];
                // The progress of SubDevices that are not counted is unknown.
                let is_missed = members.iter().any(|it| it.every == chunk.every && !it.is_absent);
                wrong += u16::from(received.is_some() && is_missed);
                for member in members.iter_mut().filter(|it| it.every == chunk.every) {
                    member.is_complete &= part == ChunkPart::Outputs || !member.has_inputs;
                    member.taken &= part == ChunkPart::Inputs || !member.has_outputs;
                }
            }
        }
        self.participants.groups.fill([true; 3]);
        let mut all = true;
        for it in &mut self.participants.members {
            it.fresh = it.is_complete && (!it.is_cut || it.closed_before && undisturbed);
            all &= it.is_absent || it.fresh && it.taken;
            if let Some(group) = it.group {
                let [fresh, taken, whole] = &mut self.participants.groups[usize::from(group)];
                (*fresh, *taken, *whole) =
                    (*fresh && it.fresh, *taken && it.taken, *whole && !it.is_absent);
            }
        }
        for it in &mut self.participants.members {
            if let Some(group) = it.group {
                let whole;
                [it.fresh, it.taken, whole] = self.participants.groups[usize::from(group)];
                it.waits = !it.is_absent && !whole;
            }
        }
        self.participants.complete = all;
        (all, wrong)
    }

    /// Appends process data until the frame is full.
    fn emit(&mut self, outgoing: &mut Outgoing<'_>) {
        while let Some(chunk) = self.layout.chunks(self.spread).get(self.sending.next_datagram.0) {
            let number = self.sending.next_datagram.0;
            if self.slow.any && !self.slow.due[number] {
                self.sending.next_datagram = (number + 1, ChunkPart::Both);
                continue;
            }
            let owner = |part| Owner::Chunk(number as u16, part);
            let part = match self.sending.next_datagram.1 {
                ChunkPart::Both => first_part(chunk),
                other => other,
            };
            let (outputs, inputs) = (chunk.output_bytes(), chunk.input_bytes());
            let (command, address, length) = match part {
                ChunkPart::Both => (Command::Lrw, chunk.logical_address, outputs + inputs),
                ChunkPart::Outputs => (Command::Lwr, chunk.logical_address, outputs),
                ChunkPart::Inputs => (Command::Lrd, chunk.inputs_address, inputs),
            };
            let (command, address) = match chunk.physical {
                None => (command, Address::Logical(address)),
                Some(register) => {
                    let station = station_address(chunk.positions.start);
                    let direct = if part == ChunkPart::Inputs { Command::Fprd } else { Command::Fpwr };
                    (direct, Address::Station { station, register })
                }
            };
            let Some(data) = outgoing.push(command, address, length, owner(part)) else {
                return;
            };
            if part != ChunkPart::Inputs {
                chunk.put_outputs(&self.outputs, data);
            }
            let inputs_follow = part == ChunkPart::Outputs && inputs > 0;
            self.sending.next_datagram =
                if inputs_follow { (number, ChunkPart::Inputs) } else { (number + 1, ChunkPart::Both) };
        }
        self.sending.is_due = false;
    }
}

impl MainDevice {
    /// Starts a cycle: process data, the reference clock's time, AL status, one clock's difference
    /// and one mailbox are due. With the first cycle a bus in PreOp continues to its target state.
    /// Frames of the last cycle that are still missing count as lost.
    #[inline]
    pub fn begin_cycle(&mut self, now: Instant) {
        if !self.cycle.begin_again() {
            self.begin_other(now);
        }
    }

    /// Begins a cycle whose frames are built.
    #[cold]
    fn begin_other(&mut self, now: Instant) {
        self.cycle.expect_nothing();
        if self.exchange.in_flight(Purpose::ProcessData) > 0 {
            self.end_cycle(now);
        }
        if self.phase.has_process_data() && self.configuration.target > AlState::PreOp {
            self.cycle.begin(self.phase() < BringUpPhase::Op);
        } else {
            self.cycle.stop();
            self.cycle.open();
        }
    }

    /// Frames of the cycle that are still out.
    #[must_use]
    pub fn awaiting(&self) -> usize {
        self.exchange.in_flight(Purpose::ProcessData)
    }

    /// Number of frames on their way, bring-up and mailbox frames included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.awaiting() + self.exchange.in_flight(Purpose::Service)
    }

    /// Ends a cycle: frames that are still out are lost, and their replies will be dropped as late.
    #[inline]
    pub fn end_cycle(&mut self, now: Instant) -> CycleReport {
        if self.cycle.end_expected() {
            return CycleReport { frames_sent: 1, all_fresh: true, ..CycleReport::default() };
        }
        self.end_other(now)
    }

    /// Ends a cycle that lacks something, follows such a one, or is none.
    #[cold]
    fn end_other(&mut self, now: Instant) -> CycleReport {
        let frames_sent = self.cycle.sending.frames_sent;
        let frames_lost = self.lose_process_data(now, frames_sent);
        self.cycle.participants.joining = self.recovery.is_joining(&self.sub_devices);
        if !self.cycle.running {
            return CycleReport { frames_sent, frames_lost, ..CycleReport::default() };
        }
        // On the way to Op the normal layout must become complete.
        let may_spread = self.phase.is_towards_op() || self.configuration.target != AlState::Op;
        let (all_fresh, working_counter_errors) = self.cycle.end(frames_lost, may_spread);
        CycleReport {
            frames_sent,
            frames_lost,
            working_counter_errors,
            all_fresh,
            spread: self.cycle.spread,
        }
    }

    /// Slot of the next frame of this cycle.
    #[inline(always)]
    pub(super) fn transmit_process_data(&mut self, now: Instant) -> Option<usize> {
        if let Some(slot) = self.transmit_again(now) {
            return Some(slot);
        }
        if !self.cycle.sending.is_open {
            self.cycle.open();
        }
        self.transmit_anew(now)
    }

    /// Command, station address and length that read the reference clock's time, if it is handed
    /// on.
    fn handed_on(&self) -> Option<(Command, u16, usize)> {
        let reference = self.reference.filter(|_| self.reference_hands_on)?;
        let it = &self.sub_devices[usize::from(reference)];
        Some((self.reference_command(), it.station_address, it.system_time_length()))
    }

    /// Builds a frame datagram by datagram. Not inlined: kept apart from the code of a cycle that
    /// does not need it.
    #[inline(never)]
    fn transmit_anew(&mut self, now: Instant) -> Option<usize> {
        let reference = self.handed_on();
        let host_time = self.host_time(now);
        let mut outgoing = self.exchange.open(Purpose::ProcessData)?;
        if self.cycle.sending.riders_due {
            self.cycle.sending.riders_due = false;
            if let Some((command, station, length)) = reference {
                let address = Address::Station { station, register: dc::SYSTEM_TIME };
                if self.configuration.steers_reference {
                    if let Some(data) = outgoing.push(Command::Fpwr, address, length, Owner::HostTime) {
                        data.copy_from_slice(&host_time.to_le_bytes()[..length]);
                    }
                }
                outgoing.push(command, address, length, Owner::ReferenceTime);
            }
            let address = Address::Broadcast { register: register::AL_STATUS };
            outgoing.push(Command::Brd, address, 2, Owner::BusStatus);
            let at = |position, register| Address::Station { station: station_address(position), register };
            if let Some(position) = self.cycle.clocks.turn() {
                let address = at(position, dc::SYSTEM_TIME_DIFFERENCE);
                outgoing.push(Command::Fprd, address, 4, Owner::ClockDifference);
            }
            if let Some(position) = self.cycle.mailboxes.turn() {
                let address = at(position, SyncManager::register(1) + sync_manager::STATUS_OFFSET);
                outgoing.push(Command::Fprd, address, 1, Owner::MailboxStatus);
            }
        }
        self.cycle.emit(&mut outgoing);
        let slot = outgoing.send(now)?;
        self.cycle.sending.frames_sent += 1;
        self.cycle.sending.bytes_sent += self.exchange.frame(slot).len() + AROUND_A_FRAME;
        self.plan_again(slot);
        Some(slot)
    }
}

/// The first datagram of a chunk.
fn first_part(chunk: &Chunk) -> ChunkPart {
    match (chunk.output_bytes() == 0, chunk.input_bytes() == 0) {
        (false, false) if chunk.read_write => ChunkPart::Both,
        (true, _) => ChunkPart::Inputs,
        _ => ChunkPart::Outputs,
    }
}

/// The datagrams of a chunk.
fn parts(chunk: &Chunk) -> impl Iterator<Item = ChunkPart> + use<> {
    let first = first_part(chunk);
    let second = (first == ChunkPart::Outputs && chunk.input_bytes() > 0).then_some(ChunkPart::Inputs);
    core::iter::once(first).chain(second)
}

/// Working counter of a datagram when every SubDevice takes part (ETG.1000.4, 5.4.1.3: a read
/// counts one, a write one, and in a read-write command a write counts two).
fn expected(chunk: &Chunk, part: ChunkPart) -> u16 {
    match part {
        ChunkPart::Both => chunk.readers + 2 * chunk.writers,
        ChunkPart::Outputs => chunk.writers,
        ChunkPart::Inputs => chunk.readers,
    }
}
