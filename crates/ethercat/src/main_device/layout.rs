//! Places of all process data: in the process image, in logical memory, in datagrams.
//!
//! The image has two sections, outputs and inputs, with one piece for each SyncManager in use, in
//! the order of positions. Logical memory holds *chunks*, one datagram each: outputs of some
//! SubDevices, then inputs of the same. A piece larger than a chunk is cut over several dedicated
//! chunks.
//!
//! The same bytes at the same addresses are laid out a second time, *spread*: an LWR and an LRD for
//! each SubDevice, so that a missing one makes no other's working counter short. Neighbours share
//! datagrams if the spread layout would not fit a cycle.

mod packing;

use alloc::vec::Vec;
use core::ops::Range;
use core::time::Duration;

use crate::register::{Fmmu, FmmuDirection};
use crate::wire::frame::DATAGRAM_OVERHEAD;

use super::exchange::SLOTS;
use packing::Packed;

/// First logical address in use. Not 0, so that a stray zero address touches nothing.
pub(super) const LOGICAL_START: u32 = 0x0001_0000;

/// Bytes of process data in one datagram. Leaves space in a frame for the datagrams that go with
/// the first.
pub(super) const CHUNK_CAPACITY: usize = 1376;

/// Bytes of datagrams that fit a frame in addition to these: a full chunk as LWR and LRD.
const FRAME_CAPACITY: usize = CHUNK_CAPACITY + 2 * DATAGRAM_OVERHEAD;

/// Bytes around a frame on the wire: preamble, check sequence, gap.
pub(super) const AROUND_A_FRAME: usize = 8 + 4 + 12;

/// Bytes of a frame besides datagrams: around the frame, Ethernet and EtherCAT header, generation
/// number.
const FRAME_OVERHEAD: usize = AROUND_A_FRAME + 14 + 2 + 16;

/// A byte on the wire at 100 Mbit/s.
pub(super) const BYTE_TIME: Duration = Duration::from_nanos(80);

/// One SyncManager's share of process data, as its SubDevice describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) position: u16,
    pub(super) direction: FmmuDirection,
    pub(super) physical_address: u16,
    pub(super) bits: usize,
    pub(super) refuses_lrw: bool,
    /// Its FMMUs map bits, and not whole bytes only.
    pub(super) maps_bits: bool,
    /// Its SubDevice may be absent.
    pub(super) is_loose: bool,
    /// Cycles from one exchange to the next.
    pub(super) every: u16,
}

impl Share {
    fn bytes(&self) -> usize {
        self.bits.div_ceil(8)
    }

    fn is_output(&self) -> bool {
        self.direction == FmmuDirection::Write
    }
}

/// A [`Share`] with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) share: Share,
    /// First logical address.
    pub(super) logical_address: u32,
    /// First bit; not 0 only if it shares a byte with others.
    pub(super) start_bit: u8,
    /// Bytes of the image: of outputs or of inputs, by the share's direction.
    pub(super) image: Range<usize>,
}

impl Piece {
    /// The FMMU that maps it.
    pub(super) fn fmmu(&self) -> Fmmu {
        let length = self.image.len() as u16;
        let mut fmmu =
            Fmmu::bytes(self.logical_address, self.share.physical_address, length, self.share.direction);
        fmmu.logical_start_bit = self.start_bit;
        fmmu.logical_end_bit = self.start_bit + ((self.share.bits + 7) % 8) as u8;
        fmmu
    }
}

/// Process data of one datagram, or of an LWR and an LRD: outputs of neighbours, and their inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The SubDevices it belongs to.
    pub(super) positions: Range<u16>,
    /// Logical address of the outputs.
    pub(super) logical_address: u32,
    /// Logical address of the inputs.
    pub(super) inputs_address: u32,
    /// Bytes of the image's outputs.
    pub(super) outputs: Range<usize>,
    /// Bytes of the image's inputs.
    pub(super) inputs: Range<usize>,
    /// Outputs in shared bytes, behind the whole ones.
    pub(super) packed_outputs: Packed,
    /// Inputs in shared bytes, behind the whole ones.
    pub(super) packed_inputs: Packed,
    /// It goes to this address of its one SubDevice's memory, and to no logical one.
    pub(super) physical: Option<u16>,
    /// True if one LRW carries it, with the inputs directly behind the outputs; otherwise an LWR
    /// and an LRD.
    pub(super) read_write: bool,
    /// True if it carries part of a SyncManager, and others the rest.
    pub(super) is_cut: bool,
    /// True if its SubDevices may be absent: while they come, others share no datagram with them.
    pub(super) is_loose: bool,
    /// Cycles from one exchange to the next.
    pub(super) every: u16,
    /// SubDevices that take outputs from it: each counts once, however many of its FMMUs match
    /// (ETG.1000.4, 5.4.1.3).
    pub(super) writers: u16,
    /// SubDevices that put inputs into it; each counts once.
    pub(super) readers: u16,
}

impl Chunk {
    /// An empty chunk of this share's SubDevice, at this offset of the image: outputs, inputs.
    fn at(share: &Share, logical_address: u32, inputs_address: u32, image: (usize, usize)) -> Self {
        Self {
            positions: share.position..share.position + 1,
            logical_address,
            inputs_address,
            outputs: image.0..image.0,
            inputs: image.1..image.1,
            packed_outputs: Packed::default(),
            packed_inputs: Packed::default(),
            physical: None,
            read_write: false,
            is_cut: false,
            is_loose: share.is_loose,
            every: share.every,
            writers: 0,
            readers: 0,
        }
    }

    /// The bytes of the image from the chunk's beginning to `image` belong to its one SubDevice.
    fn end_at(&mut self, image: (usize, usize)) {
        (self.outputs.end, self.inputs.end) = image;
        self.writers = u16::from(!self.outputs.is_empty());
        self.readers = u16::from(!self.inputs.is_empty());
    }

    /// Bytes of outputs in its datagram.
    pub(super) fn output_bytes(&self) -> usize {
        self.outputs.len() + self.packed_outputs.bytes()
    }

    /// Bytes of inputs in its datagram.
    pub(super) fn input_bytes(&self) -> usize {
        self.inputs.len() + self.packed_inputs.bytes()
    }

    /// Puts its outputs of the image into its datagram.
    #[inline]
    pub(super) fn put_outputs(&self, image: &[u8], data: &mut [u8]) {
        let outputs = &image[self.outputs.clone()];
        let (whole, packed) = data.split_at_mut(outputs.len());
        whole.copy_from_slice(outputs);
        if !self.packed_outputs.is_empty() {
            self.packed_outputs.pack(image, packed);
        }
    }

    /// Takes its inputs from its datagram, behind its outputs, into the image.
    #[inline]
    pub(super) fn take_inputs(&self, data: &[u8], image: &mut [u8]) {
        let inputs = &mut image[self.inputs.clone()];
        let (whole, packed) = data.split_at(inputs.len());
        inputs.copy_from_slice(whole);
        if !self.packed_inputs.is_empty() {
            self.packed_inputs.unpack(packed, image);
        }
    }

    fn bytes(&self) -> usize {
        self.output_bytes() + self.input_bytes()
    }

    /// True if `next` lies right behind, outputs and inputs, and both together fit a datagram.
    fn goes_on_with(&self, next: &Self) -> bool {
        self.logical_address + self.outputs.len() as u32 == next.logical_address
            && self.inputs_address + self.inputs.len() as u32 == next.inputs_address
            && (self.outputs.end, self.inputs.end) == (next.outputs.start, next.inputs.start)
            && !(self.is_cut || next.is_cut)
            && (self.physical, next.physical) == (None, None)
            && self.every == next.every
            && self.bytes() + next.bytes() <= CHUNK_CAPACITY
    }

    /// Takes in `next`, which lies right behind.
    fn join(&mut self, next: &Self) {
        self.positions.end = next.positions.end;
        self.outputs.end = next.outputs.end;
        self.inputs.end = next.inputs.end;
        self.writers += next.writers;
        self.readers += next.readers;
    }

    /// Bytes of its datagrams in a frame.
    fn datagrams(&self) -> impl Iterator<Item = usize> + use<> {
        let (outputs, inputs) = (self.output_bytes(), self.input_bytes());
        let each = if self.read_write { [outputs + inputs, 0] } else { [outputs, inputs] };
        each.into_iter().filter(|&bytes| bytes > 0).map(|bytes| bytes + DATAGRAM_OVERHEAD)
    }
}

/// Frames that `chunks` take at most, and their time on the wire.
fn load(chunks: &[Chunk]) -> (usize, Duration) {
    let (mut frames, mut room, mut bytes) = (0, 0, 0);
    for datagram in chunks.iter().flat_map(Chunk::datagrams) {
        if datagram > room {
            frames += 1;
            room = FRAME_CAPACITY;
        }
        room -= datagram;
        bytes += datagram;
    }
    (frames, BYTE_TIME * (bytes + frames * FRAME_OVERHEAD) as u32)
}

/// Joins adjacent chunks that belong `together`: its arguments are the chunk joined so far, the
/// number joined, and the next chunk.
fn joined(chunks: &[Chunk], together: impl Fn(&Chunk, usize, &Chunk) -> bool) -> Vec<Chunk> {
    let mut all: Vec<Chunk> = Vec::with_capacity(chunks.len());
    let mut count = 0;
    for next in chunks {
        match all.last_mut() {
            Some(last) if last.goes_on_with(next) && together(last, count, next) => {
                last.join(next);
                count += 1;
            }
            _ => {
                all.push(next.clone());
                count = 1;
            }
        }
    }
    all
}

/// Place of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) pieces: Vec<Piece>,
    /// As few datagrams as can be.
    pub(super) chunks: Vec<Chunk>,
    /// The same bytes, apart for each SubDevice.
    pub(super) spread: Vec<Chunk>,
    pub(super) output_bytes: usize,
    pub(super) input_bytes: usize,
    /// Shares of a few bits have bytes of logical memory in common.
    is_packed: bool,
}

impl Layout {
    /// Lays out `shares`, which are in the order of positions: the most frequently exchanged first,
    /// with separate chunks for each rate. `is_packed`: shares of a few bits share bytes.
    pub(super) fn new(shares: &[Share], is_packed: bool) -> Self {
        let mut layout = Self { is_packed, ..Self::default() };
        let mut shares = shares.to_vec();
        shares.sort_by_key(|share| share.every);
        shares.chunk_by(|a, b| a.every == b.every).for_each(|alike| layout.lay_out(alike));
        layout.pieces.sort_by_key(|piece| piece.share.position);
        layout
    }

    /// Lays out shares that are exchanged together.
    fn lay_out(&mut self, shares: &[Share]) {
        let mut group: Vec<Share> = Vec::new();
        for of_one in shares.chunk_by(|a, b| a.position == b.position) {
            let bytes: usize = of_one.iter().map(Share::bytes).sum();
            let grouped: usize = group.iter().map(Share::bytes).sum();
            if bytes > CHUNK_CAPACITY {
                self.place_group(&group);
                group.clear();
                of_one.iter().for_each(|share| self.place_alone(share));
                continue;
            }
            if grouped + bytes > CHUNK_CAPACITY {
                self.place_group(&group);
                group.clear();
            }
            group.extend(of_one);
        }
        self.place_group(&group);
    }

    /// The same bytes at the same addresses, spread for this period.
    pub(super) fn fitted(&self, groups: &[Option<u16>], period: Duration) -> Self {
        let shares: Vec<_> = self.pieces.iter().map(|piece| piece.share).collect();
        let mut layout = Self::new(&shares, self.is_packed);
        let (frames, time) = (SLOTS / 2, period * 3 / 4);
        layout.fit_spread(groups, frames, time);
        let (needed_frames, needed_time) = load(&layout.spread);
        if self.is_packed && (needed_frames > frames || needed_time > time) {
            layout.spread.clone_from(&layout.chunks);
        }
        layout
    }

    /// True if it packs, and its spread layout did not fit: a missing SubDevice hides the inputs of
    /// its whole datagram.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_packed && self.spread == self.chunks
    }

    /// Full frames that the wire carries in three quarters of a period, in addition to process
    /// data.
    pub(super) fn spare_frames(&self, period: Duration) -> u16 {
        let (_, taken) = load(&self.chunks);
        let each = BYTE_TIME * (FRAME_CAPACITY + FRAME_OVERHEAD) as u32;
        let spare = (period * 3 / 4).saturating_sub(taken).as_nanos() / each.as_nanos();
        u16::try_from(spare).unwrap_or(u16::MAX)
    }

    /// The datagrams of a cycle.
    pub(super) fn chunks(&self, spread: bool) -> &[Chunk] {
        if spread { &self.spread } else { &self.chunks }
    }

    /// Joins neighbours in the spread layout: members of one of the `groups`, by position, and then
    /// as many more as needed to stay within `frames` and `time` on the wire (or within the needs
    /// of the other layout).
    pub(super) fn fit_spread(&mut self, groups: &[Option<u16>], frames: usize, time: Duration) {
        let group = |it: &Chunk| groups.get(usize::from(it.positions.start)).copied().flatten();
        let apart =
            joined(&self.spread, |last, _, next| group(last).is_some() && group(last) == group(next));
        let (whole_frames, whole_time) = load(&self.chunks);
        let (frames, time) = (frames.max(whole_frames), time.max(whole_time));
        let mut most = 1;
        loop {
            self.spread =
                joined(&apart, |last, count, next| count < most && !last.is_loose && !next.is_loose);
            let (needed_frames, needed_time) = load(&self.spread);
            if needed_frames <= frames && needed_time <= time || most >= apart.len() {
                return;
            }
            most += 1 + most / 4;
        }
    }

    fn place_group(&mut self, group: &[Share]) {
        if group.iter().all(|share| share.bits == 0) {
            return;
        }
        let (whole, few) =
            if self.is_packed { packing::divided(group) } else { (group.to_vec(), Vec::new()) };
        let first = self.spread.len();
        let start = self.next_logical_address();
        let output_bytes: usize = whole.iter().filter(|share| share.is_output()).map(Share::bytes).sum();
        let mut chunk = Chunk::at(&group[0], start, start + output_bytes as u32, self.image_end());
        chunk.read_write = !group.iter().any(|share| share.refuses_lrw);
        // The shared bytes follow the whole ones: their number is needed before the inputs get
        // their addresses.
        let mut packed = [Packed::default(), Packed::default()];
        for share in &few {
            packed[usize::from(!share.is_output())].push(share, 0);
        }
        chunk.inputs_address += packed[0].bytes() as u32;
        let (mut logical_address, mut inputs_address) = (chunk.logical_address, chunk.inputs_address);
        for of_one in whole.chunk_by(|a, b| a.position == b.position) {
            let mut own = Chunk::at(&of_one[0], logical_address, inputs_address, self.image_end());
            for share in of_one {
                let address = if share.is_output() { &mut logical_address } else { &mut inputs_address };
                *address += self.place(share, *address, 0).len() as u32;
            }
            own.end_at(self.image_end());
            if own.bytes() > 0 {
                chunk.join(&own);
                self.spread.push(own);
            }
        }
        for share in &few {
            let mut own = Chunk::at(share, 0, 0, self.image_end());
            let (address, packed, image) = match share.is_output() {
                true => (logical_address, &mut chunk.packed_outputs, self.output_bytes),
                false => (inputs_address, &mut chunk.packed_inputs, self.input_bytes),
            };
            let it = packed.push(share, image);
            self.place(share, address + it.byte as u32, it.start_bit);
            own.end_at(self.image_end());
            own.physical = Some(share.physical_address);
            (chunk.writers, chunk.readers) = (chunk.writers + own.writers, chunk.readers + own.readers);
            chunk.positions.start = chunk.positions.start.min(share.position);
            chunk.positions.end = chunk.positions.end.max(share.position + 1);
            self.spread.push(own);
        }
        self.spread[first..].sort_by_key(|it| (it.positions.start, it.physical.is_some()));
        self.chunks.push(chunk);
    }

    /// A share that does not fit a chunk with others: consecutive dedicated chunks.
    fn place_alone(&mut self, share: &Share) {
        let start = self.next_logical_address();
        let mut end = self.image_end();
        let image = self.place(share, start, 0);
        for part in image.clone().step_by(CHUNK_CAPACITY) {
            let logical_address = start + (part - image.start) as u32;
            let length = (image.end - part).min(CHUNK_CAPACITY);
            let outputs = if share.is_output() { length } else { 0 };
            let mut chunk = Chunk::at(share, logical_address, logical_address + outputs as u32, end);
            end = (end.0 + outputs, end.1 + length - outputs);
            chunk.end_at(end);
            chunk.is_cut = image.len() > CHUNK_CAPACITY;
            self.spread.push(chunk.clone());
            self.chunks.push(chunk);
        }
    }

    fn image_end(&self) -> (usize, usize) {
        (self.output_bytes, self.input_bytes)
    }

    fn place(&mut self, share: &Share, logical_address: u32, start_bit: u8) -> Range<usize> {
        let end = if share.is_output() { &mut self.output_bytes } else { &mut self.input_bytes };
        let image = *end..*end + share.bytes();
        *end = image.end;
        if share.bits > 0 {
            self.pieces.push(Piece { share: *share, logical_address, start_bit, image: image.clone() });
        }
        image
    }

    fn next_logical_address(&self) -> u32 {
        self.chunks.last().map_or(LOGICAL_START, |chunk| chunk.inputs_address + chunk.input_bytes() as u32)
    }
}

#[cfg(test)]
mod tests;
