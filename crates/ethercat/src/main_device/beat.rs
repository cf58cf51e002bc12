//! One beat: process data, and what rides along with it.

use core::ops::Range;
use core::time::Duration;

use crate::al::AlState;
use crate::register::{self, SyncManager, dc, sync_manager};
use crate::time::Instant;
use crate::wire::{Address, Command};

use super::MainDevice;
use super::exchange::{ChunkPart, Outgoing, Owner, Purpose};
use super::layout::{Chunk, Layout};
use super::report::{BeatReport, WorkingCounter};

/// Process data, and where the beat stands.
#[derive(Debug, Default)]
pub(super) struct Beat {
    pub(super) layout: Layout,
    pub(super) outputs: Vec<u8>,
    pub(super) inputs: Vec<u8>,
    /// What came back of each chunk: with one LRW the first, else of LWR and LRD.
    received: Vec<[Option<u16>; 2]>,
    /// Beats are being made.
    pub(super) running: bool,
    /// Datagrams of this beat still to be sent: first those that ride along.
    riders_due: bool,
    next_datagram: (usize, ChunkPart),
    frames_sent: u16,
    /// Service frames this beat may still send.
    pub(super) services: u16,
    /// Beats in a row with every working counter right.
    pub(super) whole_beats: u32,
    /// Whose diagnosis rides along next.
    diagnosed: u16,
    cut: CutInputs,
}

/// Inputs of one SubDevice that take more than one datagram.
///
/// Reading the first byte of a SyncManager's buffer opens it, reading the last closes it. Between a first part
/// that was read and a last part that was not, the buffer stays open, and the next beat reads it again: old
/// data with right working counters. So such inputs are fresh only in a beat that came back in order and
/// undisturbed, after one that did too.
#[derive(Debug, Default)]
struct CutInputs {
    /// The beat before left the buffers closed.
    closed_before: bool,
    disturbed: bool,
    /// The chunk that came back last.
    newest: u16,
}

/// Service frames in one beat: bring-up and mailboxes share the wire with process data.
const SERVICES_A_BEAT: u16 = 1;

impl Beat {
    /// Takes over a layout; all outputs are zero.
    pub(super) fn set_layout(&mut self, layout: Layout) {
        self.outputs = vec![0; layout.output_bytes];
        self.inputs = vec![0; layout.input_bytes];
        self.received = vec![[None; 2]; layout.chunks.len()];
        self.next_datagram = (layout.chunks.len(), ChunkPart::Both);
        self.layout = layout;
    }

    /// A process data datagram came back. Inputs count only if everybody put theirs in.
    pub(super) fn receive(&mut self, chunk: u16, part: ChunkPart, data: &[u8], working_counter: u16) {
        let number = usize::from(chunk);
        let chunk = &self.layout.chunks[number];
        self.received[number][usize::from(part == ChunkPart::Inputs)] = Some(working_counter);
        self.cut.disturbed |= (number as u16) < self.cut.newest && chunk.is_cut;
        if chunk.is_cut {
            self.cut.newest = number as u16;
        }
        if part == ChunkPart::Outputs || working_counter != expected(chunk, part) {
            return;
        }
        let start = if part == ChunkPart::Both { chunk.outputs.len() } else { 0 };
        self.inputs[chunk.inputs.clone()].copy_from_slice(&data[start..]);
    }

    /// Whether all these chunks' inputs came in with this beat.
    pub(super) fn are_fresh(&self, chunks: Range<usize>) -> bool {
        let is_cut = self.layout.chunks[chunks.clone()].iter().any(|chunk| chunk.is_cut);
        self.running && (!is_cut || self.cut_inputs_are_of_this_beat()) && self.are_complete(chunks)
    }

    /// Whether all these chunks' inputs came in with right working counters.
    fn are_complete(&self, chunks: Range<usize>) -> bool {
        self.layout.chunks[chunks.clone()].iter().zip(&self.received[chunks]).all(|(chunk, received)| {
            parts(chunk)
                .filter(|&part| part != ChunkPart::Outputs)
                .all(|part| received[usize::from(part == ChunkPart::Inputs)] == Some(expected(chunk, part)))
        })
    }

    fn cut_inputs_are_of_this_beat(&self) -> bool {
        self.cut.closed_before && !self.cut.disturbed
    }

    /// A reply came that is late or a duplicate: its request may have opened buffers.
    pub(super) fn disturbed(&mut self) {
        self.cut.disturbed = true;
    }

    pub(super) fn working_counters(&self) -> impl Iterator<Item = WorkingCounter> {
        self.layout.chunks.iter().zip(&self.received).flat_map(|(chunk, received)| {
            parts(chunk).map(move |part| WorkingCounter {
                expected: expected(chunk, part),
                received: received[usize::from(part == ChunkPart::Inputs)],
            })
        })
    }

    fn begin(&mut self) {
        self.running = true;
        self.riders_due = true;
        self.next_datagram = (0, ChunkPart::Both);
        self.frames_sent = 0;
        self.services = SERVICES_A_BEAT;
        let cut = |chunk: &Chunk| chunk.is_cut;
        let closed = (0..self.received.len())
            .filter(|&number| cut(&self.layout.chunks[number]))
            .all(|number| self.are_complete(number..number + 1));
        self.cut = CutInputs { closed_before: closed && !self.cut.disturbed, disturbed: false, newest: 0 };
        self.received.fill([None; 2]);
    }

    fn is_due(&self) -> bool {
        self.running && (self.riders_due || self.next_datagram.0 < self.layout.chunks.len())
    }

    /// Appends process data until the frame is full.
    fn emit(&mut self, outgoing: &mut Outgoing<'_>) {
        while let Some(chunk) = self.layout.chunks.get(self.next_datagram.0) {
            let number = self.next_datagram.0;
            let owner = |part| Owner::Chunk(number as u16, part);
            let part = match self.next_datagram.1 {
                ChunkPart::Both => first_part(chunk),
                other => other,
            };
            let (command, logical, length) = match part {
                ChunkPart::Both => {
                    (Command::Lrw, chunk.logical_address, chunk.outputs.len() + chunk.inputs.len())
                }
                ChunkPart::Outputs => (Command::Lwr, chunk.logical_address, chunk.outputs.len()),
                ChunkPart::Inputs => (Command::Lrd, chunk.inputs_address(), chunk.inputs.len()),
            };
            let Some(data) = outgoing.push(command, Address::Logical(logical), length, owner(part)) else {
                return;
            };
            if part != ChunkPart::Inputs {
                data[..chunk.outputs.len()].copy_from_slice(&self.outputs[chunk.outputs.clone()]);
            }
            let inputs_follow = part == ChunkPart::Outputs && !chunk.inputs.is_empty();
            self.next_datagram =
                if inputs_follow { (number, ChunkPart::Inputs) } else { (number + 1, ChunkPart::Both) };
        }
    }
}

impl MainDevice {
    /// Starts a beat: process data, the reference clock's time, AL status and one diagnosis are due. With
    /// the first one a bus in PreOp goes on to its target. Whatever is still out of the last beat counts
    /// as lost.
    pub fn begin_beat(&mut self, now: Instant) {
        if self.exchange.in_flight(Purpose::ProcessData) > 0 {
            self.end_beat(now);
        }
        if self.phase.has_process_data() && self.configuration.target > AlState::PreOp {
            self.beat.begin();
        } else {
            self.beat.running = false;
        }
    }

    /// Frames of the beat that are still out.
    #[must_use]
    pub fn awaiting(&self) -> usize {
        self.exchange.in_flight(Purpose::ProcessData)
    }

    /// All frames that are still out, those of bring-up and mailboxes included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.awaiting() + self.exchange.in_flight(Purpose::Service)
    }

    /// Ends a beat: frames that are still out are lost, and their replies will be dropped as late.
    pub fn end_beat(&mut self, now: Instant) -> BeatReport {
        let mut report = BeatReport { frames_sent: self.beat.frames_sent, ..BeatReport::default() };
        while let Some(index) = self.exchange.expire(Purpose::ProcessData, now, Duration::ZERO) {
            report.frames_lost += 1;
            let _ = index;
        }
        if !self.beat.running {
            return report;
        }
        let cut = self.beat.layout.chunks.iter().any(|chunk| chunk.is_cut && !chunk.inputs.is_empty());
        report.all_fresh = report.frames_lost == 0 && (!cut || self.beat.cut_inputs_are_of_this_beat());
        for working_counter in self.beat.working_counters() {
            report.all_fresh &= working_counter.is_complete();
            let wrong =
                working_counter.received.is_some_and(|received| received != working_counter.expected);
            report.working_counter_errors += u16::from(wrong);
        }
        self.beat.whole_beats = if report.all_fresh { self.beat.whole_beats.saturating_add(1) } else { 0 };
        report
    }

    /// The next frame of this beat.
    pub(super) fn transmit_process_data(&mut self, now: Instant, buffer: &mut [u8]) -> Option<usize> {
        if !self.beat.is_due() {
            return None;
        }
        let mut outgoing = self.exchange.open(Purpose::ProcessData, buffer)?;
        if self.beat.riders_due {
            self.beat.riders_due = false;
            if let Some(reference) = self.reference {
                let station = self.sub_devices[usize::from(reference)].station_address;
                let address = Address::Station { station, register: dc::SYSTEM_TIME };
                outgoing.push(Command::Frmw, address, 8, Owner::ReferenceTime);
            }
            let address = Address::Broadcast { register: register::AL_STATUS };
            outgoing.push(Command::Brd, address, 2, Owner::BusStatus);
            if let Some(sub_device) = self.sub_devices.get(usize::from(self.beat.diagnosed)) {
                let (station, position) = (sub_device.station_address, sub_device.position);
                let at = |register| Address::Station { station, register };
                if sub_device.clock.is_some() {
                    let address = at(dc::SYSTEM_TIME_DIFFERENCE);
                    outgoing.push(Command::Fprd, address, 4, Owner::ClockDifference(position));
                }
                if sub_device.mailbox.is_some() {
                    let address = at(SyncManager::register(1) + sync_manager::STATUS_OFFSET);
                    outgoing.push(Command::Fprd, address, 1, Owner::MailboxStatus(position));
                }
                self.beat.diagnosed = (position + 1) % self.sub_devices.len().max(1) as u16;
            }
        }
        self.beat.emit(&mut outgoing);
        let length = outgoing.send(now)?;
        self.beat.frames_sent += 1;
        Some(length)
    }
}

/// Which datagram of a chunk comes first.
fn first_part(chunk: &Chunk) -> ChunkPart {
    match (chunk.outputs.is_empty(), chunk.inputs.is_empty()) {
        (false, false) if chunk.read_write => ChunkPart::Both,
        (true, _) => ChunkPart::Inputs,
        _ => ChunkPart::Outputs,
    }
}

/// The datagrams of a chunk.
fn parts(chunk: &Chunk) -> impl Iterator<Item = ChunkPart> + use<> {
    let first = first_part(chunk);
    let second = (first == ChunkPart::Outputs && !chunk.inputs.is_empty()).then_some(ChunkPart::Inputs);
    core::iter::once(first).chain(second)
}

/// Working counter of a datagram when every SubDevice takes part (ETG.1000.4, 5.4.1.3: a read counts one,
/// a write one, and in a read-write command a write counts two).
fn expected(chunk: &Chunk, part: ChunkPart) -> u16 {
    match part {
        ChunkPart::Both => chunk.readers + 2 * chunk.writers,
        ChunkPart::Outputs => chunk.writers,
        ChunkPart::Inputs => chunk.readers,
    }
}
