//! Where everybody's process data lies: in the process image, in logical memory, in datagrams.
//!
//! The image is two stretches of bytes, outputs and inputs, one piece for each SyncManager in use, in the
//! order of positions. Logical memory holds *chunks*, one datagram each: outputs of some SubDevices, then
//! inputs of the same. A piece larger than a chunk is cut over chunks of its own.

use core::ops::Range;

use crate::register::{Fmmu, FmmuDirection};

/// First logical address in use. Not 0, so that a stray zero address touches nothing.
pub(super) const LOGICAL_START: u32 = 0x0001_0000;

/// Bytes of process data in one datagram. Leaves room in a frame for what rides along with the first.
pub(super) const CHUNK_CAPACITY: usize = 1376;

/// One SyncManager's share of process data, as its SubDevice describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) position: u16,
    pub(super) direction: FmmuDirection,
    pub(super) physical_address: u16,
    pub(super) bits: usize,
    pub(super) refuses_lrw: bool,
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
    /// Bytes of the image: of outputs or of inputs, by the share's direction.
    pub(super) image: Range<usize>,
}

impl Piece {
    /// The FMMU that maps it.
    pub(super) fn fmmu(&self) -> Fmmu {
        let length = self.image.len() as u16;
        let mut fmmu =
            Fmmu::bytes(self.logical_address, self.share.physical_address, length, self.share.direction);
        fmmu.logical_end_bit = ((self.share.bits + 7) % 8) as u8;
        fmmu
    }

    fn overlaps(&self, logical: &Range<u32>) -> bool {
        let end = self.logical_address + self.image.len() as u32;
        self.logical_address < logical.end && logical.start < end
    }
}

/// One datagram's worth of process data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) logical_address: u32,
    /// Bytes of the image's outputs, which come first.
    pub(super) outputs: Range<usize>,
    /// Bytes of the image's inputs, which come second.
    pub(super) inputs: Range<usize>,
    /// Whether one LRW carries it; otherwise an LWR and an LRD.
    pub(super) read_write: bool,
    /// Whether it carries part of a SyncManager, and others the rest.
    pub(super) is_cut: bool,
    /// SubDevices that take outputs from it.
    pub(super) writers: u16,
    /// SubDevices that put inputs into it.
    pub(super) readers: u16,
}

impl Chunk {
    /// Logical address of the inputs.
    pub(super) fn inputs_address(&self) -> u32 {
        self.logical_address + self.outputs.len() as u32
    }
}

/// Everybody's place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) pieces: Vec<Piece>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) output_bytes: usize,
    pub(super) input_bytes: usize,
}

impl Layout {
    /// Lays out `shares`, which stand in the order of positions.
    pub(super) fn new(shares: &[Share]) -> Self {
        let mut layout = Self::default();
        let mut group: Vec<Share> = Vec::new();
        for of_one in shares.chunk_by(|a, b| a.position == b.position) {
            let bytes: usize = of_one.iter().map(Share::bytes).sum();
            let grouped: usize = group.iter().map(Share::bytes).sum();
            if bytes > CHUNK_CAPACITY {
                layout.place_group(&group);
                group.clear();
                of_one.iter().for_each(|share| layout.place_alone(share));
                continue;
            }
            if grouped + bytes > CHUNK_CAPACITY {
                layout.place_group(&group);
                group.clear();
            }
            group.extend(of_one);
        }
        layout.place_group(&group);
        layout.pieces.sort_by_key(|piece| piece.share.position);
        layout.count_participants();
        layout
    }

    fn place_group(&mut self, group: &[Share]) {
        if group.iter().all(|share| share.bits == 0) {
            return;
        }
        let logical_address = self.next_logical_address();
        let (output_start, input_start) = (self.output_bytes, self.input_bytes);
        for share in group.iter().filter(|share| share.is_output()) {
            let offset = self.output_bytes - output_start;
            self.place(share, logical_address + offset as u32);
        }
        let outputs = output_start..self.output_bytes;
        for share in group.iter().filter(|share| !share.is_output()) {
            let offset = outputs.len() + self.input_bytes - input_start;
            self.place(share, logical_address + offset as u32);
        }
        let read_write = !group.iter().any(|share| share.refuses_lrw);
        let inputs = input_start..self.input_bytes;
        let is_cut = false;
        self.chunks.push(Chunk {
            logical_address,
            outputs,
            inputs,
            read_write,
            is_cut,
            writers: 0,
            readers: 0,
        });
    }

    /// A share that does not fit a chunk with others: consecutive chunks of its own.
    fn place_alone(&mut self, share: &Share) {
        let logical_address = self.next_logical_address();
        let image = self.place(share, logical_address);
        for start in image.clone().step_by(CHUNK_CAPACITY) {
            let part = start..image.end.min(start + CHUNK_CAPACITY);
            let logical_address = logical_address + (start - image.start) as u32;
            let (outputs, inputs) = if share.is_output() { (part, 0..0) } else { (0..0, part) };
            self.chunks.push(Chunk {
                logical_address,
                outputs,
                inputs,
                read_write: false,
                is_cut: image.len() > CHUNK_CAPACITY,
                writers: 0,
                readers: 0,
            });
        }
    }

    fn place(&mut self, share: &Share, logical_address: u32) -> Range<usize> {
        let end = if share.is_output() { &mut self.output_bytes } else { &mut self.input_bytes };
        let image = *end..*end + share.bytes();
        *end = image.end;
        if share.bits > 0 {
            self.pieces.push(Piece { share: *share, logical_address, image: image.clone() });
        }
        image
    }

    fn next_logical_address(&self) -> u32 {
        self.chunks.last().map_or(LOGICAL_START, |chunk| chunk.inputs_address() + chunk.inputs.len() as u32)
    }

    /// A SubDevice counts once for a datagram it reads from and once for one it writes to, however many of
    /// its FMMUs match (ETG.1000.4, 5.4.1.3).
    fn count_participants(&mut self) {
        for chunk in &mut self.chunks {
            let end = chunk.inputs_address() + chunk.inputs.len() as u32;
            let logical = chunk.logical_address..end;
            let count = |output: bool| {
                let mut positions: Vec<_> = self
                    .pieces
                    .iter()
                    .filter(|piece| piece.share.is_output() == output && piece.overlaps(&logical))
                    .map(|piece| piece.share.position)
                    .collect();
                positions.dedup();
                positions.len() as u16
            };
            (chunk.writers, chunk.readers) = (count(true), count(false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(position: u16, output: bool, bits: usize) -> Share {
        let direction = if output { FmmuDirection::Write } else { FmmuDirection::Read };
        Share { position, direction, physical_address: 0x1100, bits, refuses_lrw: false }
    }

    #[test]
    fn six_drives_of_twelve_bytes_are_one_datagram() {
        let shares: Vec<_> = (0..6).flat_map(|it| [share(it, true, 96), share(it, false, 96)]).collect();
        let layout = Layout::new(&shares);
        assert_eq!((layout.output_bytes, layout.input_bytes), (72, 72));
        let [chunk] = &layout.chunks[..] else { panic!("one chunk") };
        assert_eq!((chunk.writers, chunk.readers, chunk.read_write), (6, 6, true));
        assert_eq!((chunk.outputs.clone(), chunk.inputs.clone()), (0..72, 0..72));
        let third_inputs = layout.pieces.iter().find(|it| it.share == shares[5]).unwrap();
        assert_eq!(third_inputs.logical_address, LOGICAL_START + 72 + 24);
        assert_eq!(third_inputs.image, 24..36);
    }

    #[test]
    fn a_few_bits_take_a_byte_and_map_only_their_bits() {
        let layout = Layout::new(&[share(0, true, 4), share(1, true, 12)]);
        assert_eq!(layout.output_bytes, 3);
        assert_eq!(layout.pieces[0].fmmu().bit_length(), 4);
        assert_eq!(layout.pieces[1].fmmu().bit_length(), 12);
        assert_eq!(layout.pieces[1].logical_address, LOGICAL_START + 1);
    }

    #[test]
    fn one_refusal_splits_its_chunk_into_write_and_read() {
        let mut shares = [share(0, true, 8), share(0, false, 8)];
        shares[1].refuses_lrw = true;
        assert!(!Layout::new(&shares).chunks[0].read_write);
    }

    #[test]
    fn sixty_large_subdevices_fill_frames_without_splitting_any() {
        let shares: Vec<_> = (0..60).flat_map(|it| [share(it, true, 800), share(it, false, 800)]).collect();
        let layout = Layout::new(&shares);
        assert_eq!(layout.chunks.len(), 10); // six of 200 bytes in 1376
        assert!(layout.chunks.iter().all(|chunk| (chunk.writers, chunk.readers) == (6, 6)));
        let logical: Vec<_> = layout.chunks.iter().map(|chunk| chunk.logical_address).collect();
        assert!(logical.windows(2).all(|pair| pair[1] - pair[0] == 1200));
    }

    #[test]
    fn a_piece_larger_than_a_datagram_is_cut_and_counted_in_each() {
        let layout = Layout::new(&[share(0, true, 8), share(1, false, 3000 * 8), share(2, true, 8)]);
        let lengths: Vec<_> = layout
            .chunks
            .iter()
            .map(|it| (it.outputs.len(), it.inputs.len(), it.writers, it.readers))
            .collect();
        assert_eq!(lengths, [(1, 0, 1, 0), (0, 1376, 0, 1), (0, 1376, 0, 1), (0, 248, 0, 1), (1, 0, 1, 0)]);
        assert_eq!(layout.pieces[1].fmmu().length, 3000);
    }
}
