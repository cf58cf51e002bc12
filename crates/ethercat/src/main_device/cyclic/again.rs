//! The cycle of a quiet bus: one frame, sent again with new outputs. Its reply is known except for
//! inputs and clocks.
//!
//! The offsets of data in that frame, and the end of its reply, are recorded when the frame is
//! built ([`MainDevice::plan_again`] checks all conditions for an identical next cycle). From then
//! on a cycle compares and copies. An unexpected reply, a frame in addition to process data, or a
//! state request calls [`Cyclic::expect_nothing`], and the next frame is built from its datagrams.

use core::num::NonZero;
use core::ops::Range;

use super::super::MainDevice;
use super::super::exchange::{ChunkPart, Owner, Tail};
use super::super::layout::Chunk;
use super::super::sub_device::station_address;
use super::{Cyclic, expected};
use crate::al::AlState;
use crate::register::sync_manager::STATUS_MAILBOX_FULL;
use crate::time::Instant;

/// The frame of the cycle before, as long as it is all of a cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    slot: usize,
    /// Offsets of the polled station addresses: for a clock difference, for mail.
    asks: [Option<NonZero<u16>>; 2],
    has_clocks: bool,
    /// Some bytes of it are shared by several SubDevices.
    is_packed: bool,
}

/// Places of a chunk's whole bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Placed {
    outputs: Part,
    inputs: Part,
}

/// Bytes that stand side by side in an image, and in that frame.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    image: u32,
    frame: u16,
    length: u16,
}

impl Part {
    fn new(image: &Range<usize>, frame: usize) -> Self {
        Self { image: image.start as u32, frame: frame as u16, length: image.len() as u16 }
    }

    fn image(self) -> Range<usize> {
        self.image as usize..self.image as usize + usize::from(self.length)
    }

    fn frame(self) -> Range<usize> {
        self.frame.into()..usize::from(self.frame) + usize::from(self.length)
    }
}

impl Cyclic {
    /// Makes the next frame be built from its datagrams, and replies be checked in full: the cycle
    /// has more than process data, or may have.
    pub(in super::super) fn expect_nothing(&mut self) {
        self.again = None;
    }

    /// True while the frame of the cycle before is sent again.
    pub(in super::super) fn repeats(&self) -> bool {
        self.again.is_some()
    }

    /// Begins a cycle after one with the expected reply, if its frame is sent again. Otherwise
    /// false, and no cycle begins.
    #[inline(always)]
    pub(super) fn begin_again(&mut self) -> bool {
        let begins = self.again.is_some() && self.replies.all_as_expected;
        if begins {
            (self.sending.is_due, self.sending.is_open) = (true, false);
            self.replies.all_as_expected = false;
            self.participants.all = Some(false);
            self.sending.frames_sent = 0;
        }
        begins
    }

    #[cold]
    fn unpack(&mut self, reply: &[u8]) {
        for (chunk, placed) in self.layout.chunks.iter().zip(&self.placed) {
            chunk.take_inputs(&reply[placed.inputs.frame().start..], &mut self.inputs);
        }
    }

    /// Takes the inputs of a reply with the expected end, if the frame in this slot is the one sent
    /// again. Returns whether the reply has the time of clocks.
    #[inline(always)]
    pub(in super::super) fn receive_again(&mut self, slot: usize, reply: &[u8]) -> Option<bool> {
        let again = self.again.as_ref().filter(|it| it.slot == slot)?;
        let (has_clocks, is_packed) = (again.has_clocks, again.is_packed);
        for placed in &self.placed {
            let inputs = reply.get(placed.inputs.frame())?;
            self.inputs.get_mut(placed.inputs.image())?.copy_from_slice(inputs);
        }
        if is_packed {
            self.unpack(reply);
        }
        self.replies.all_as_expected = true;
        Some(has_clocks)
    }

    /// Ends a cycle with the expected reply. Otherwise false, and the cycle still has to be ended.
    #[inline(always)]
    pub(super) fn end_expected(&mut self) -> bool {
        if self.replies.all_as_expected {
            // With some absent it is known of each, and stays as it was.
            self.participants.all = if self.participants.absent == 0 { Some(true) } else { None };
        }
        self.replies.all_as_expected
    }

    /// Records the data of each chunk that came in a cycle with the expected reply.
    pub(super) fn write_down(&mut self) {
        if !core::mem::take(&mut self.replies.all_as_expected) {
            return;
        }
        for (chunk, received) in self.layout.chunks.iter().zip(&mut self.replies.received) {
            for part in super::parts(chunk) {
                received[usize::from(part == ChunkPart::Inputs)] = Some(expected(chunk, part));
            }
        }
    }
}

impl MainDevice {
    /// Sends the frame of the previous cycle once more; `None` if the next one has to be built.
    #[inline(always)]
    pub(super) fn transmit_again(&mut self, now: Instant) -> Option<usize> {
        let Self { cycle, exchange, .. } = self;
        let again = cycle.again.as_ref()?;
        exchange.send_again(again.slot, now, |frame| {
            for placed in &cycle.placed {
                let outputs = cycle.outputs.get(placed.outputs.image())?;
                frame.get_mut(placed.outputs.frame())?.copy_from_slice(outputs);
            }
            if again.is_packed {
                pack(&cycle.layout.chunks, &cycle.placed, &cycle.outputs, frame);
            }
            for (at, polled) in again.asks.iter().zip([&mut cycle.clocks, &mut cycle.mailboxes]) {
                if let Some(at) = at {
                    let asked = frame.get_mut(usize::from(at.get())..)?.first_chunk_mut()?;
                    *asked = station_address(polled.turn()?).to_le_bytes();
                }
            }
            Some(())
        })?;
        (cycle.sending.is_due, cycle.sending.frames_sent) = (false, 1);
        Some(again.slot)
    }

    /// Has the frame in this slot, which was built and is on its way, sent again in the next
    /// cycles, if it is all of a cycle and the bus is quiet.
    #[cold]
    pub(super) fn plan_again(&mut self, slot: usize) {
        let cycle = &self.cycle;
        // A cycle with a second frame, slower exchanges, this host's time or the spread layout is
        // built each time.
        let is_part = cycle.sending.is_due || cycle.sending.frames_sent > 1 || cycle.slow.any;
        let is_other = cycle.spread || self.configuration.steers_reference || !cycle.is_known_of_each();
        // A reference clock in doubt is read alone, until it answers; below SafeOp the next cycle
        // does not exist.
        let is_last = self.reference_silent > 0 || self.configuration.target <= AlState::PreOp;
        if is_part || is_other || is_last || !self.check_quiet() {
            return;
        }
        let Some((status, answering)) = self.settled_status() else { return };
        let Self { cycle, exchange, .. } = self;
        let mut again = Again { slot, asks: [None; 2], has_clocks: false, is_packed: false };
        let counter = |counter: u16| u32::from(counter) << 16;
        for sent in exchange.datagrams_mut(slot) {
            sent.usual = match sent.owner {
                Owner::Chunk(number, part) => {
                    let number = usize::from(number);
                    let (chunk, placed) = (&cycle.layout.chunks[number], &mut cycle.placed[number]);
                    let data = sent.data_offset();
                    if part != ChunkPart::Inputs {
                        placed.outputs = Part::new(&chunk.outputs, data);
                    }
                    if part != ChunkPart::Outputs {
                        let behind = if part == ChunkPart::Both { chunk.output_bytes() } else { 0 };
                        placed.inputs = Part::new(&chunk.inputs, data + behind);
                    }
                    let whole = chunk.outputs.len() + chunk.inputs.len();
                    again.is_packed |= whole != chunk.output_bytes() + chunk.input_bytes();
                    Tail { bits: counter(expected(chunk, part)), mask: counter(u16::MAX) }
                }
                Owner::BusStatus => Tail { bits: counter(answering) | u32::from(status), mask: u32::MAX },
                Owner::MailboxStatus => {
                    again.asks[1] = NonZero::new(sent.station_offset());
                    Tail { bits: 0, mask: u32::from(STATUS_MAILBOX_FULL) << 8 }
                }
                owner => {
                    if owner == Owner::ClockDifference {
                        again.asks[0] = NonZero::new(sent.station_offset());
                    }
                    again.has_clocks = true;
                    Tail::default()
                }
            };
        }
        cycle.again = Some(again);
    }
}

/// Outputs of chunks with shared bytes.
#[cold]
fn pack(chunks: &[Chunk], placed: &[Placed], outputs: &[u8], frame: &mut [u8]) {
    for (chunk, placed) in chunks.iter().zip(placed) {
        chunk.put_outputs(outputs, &mut frame[placed.outputs.frame().start..]);
    }
}
