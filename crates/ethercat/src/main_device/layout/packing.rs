//! Shares of a few bits in shared bytes of logical memory, each mapped by its FMMU's start and stop
//! bit (ETG.1000.4, 6.9).
//!
//! The process image is as without packing: a separate byte for each share. Only datagrams are
//! shorter. In the spread layout such a share is read and written at its address in the SubDevice's
//! memory (FPRD, FPWR): every SubDevice that maps a bit of a logical byte answers for it, so
//! logical addresses would not distinguish neighbours.

use alloc::vec::Vec;

use super::Share;

/// One such share: its place among the packed bytes of its chunk and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    /// Byte of the image.
    pub(super) image: usize,
    /// Byte behind the whole ones of the chunk.
    pub(super) byte: usize,
    pub(super) start_bit: u8,
    bits: u8,
}

impl Bits {
    fn mask(self) -> u8 {
        (1 << self.bits) - 1
    }
}

/// Packed shares of one direction in a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Packed(Vec<Bits>);

impl Packed {
    /// Appends `share`, with this byte of the image: to the last byte, or the next if that has no
    /// space. No share crosses a byte boundary.
    pub(super) fn push(&mut self, share: &Share, image: usize) -> Bits {
        let bits = share.bits as u8;
        let (byte, start_bit) = match self.0.last() {
            None => (0, 0),
            Some(last) if last.start_bit + last.bits + bits <= 8 => (last.byte, last.start_bit + last.bits),
            Some(last) => (last.byte + 1, 0),
        };
        let place = Bits { image, byte, start_bit, bits };
        self.0.push(place);
        place
    }

    /// True if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.last().map_or(0, |last| last.byte + 1)
    }

    /// From the image to a datagram.
    #[inline(never)]
    pub(super) fn pack(&self, image: &[u8], data: &mut [u8]) {
        for it in &self.0 {
            if it.start_bit == 0 {
                data[it.byte] = 0;
            }
            data[it.byte] |= (image[it.image] & it.mask()) << it.start_bit;
        }
    }

    /// From a datagram to the image.
    #[inline(never)]
    pub(super) fn unpack(&self, data: &[u8], image: &mut [u8]) {
        for it in &self.0 {
            image[it.image] = data[it.byte] >> it.start_bit & it.mask();
        }
    }
}

/// Divides the shares of a group into whole ones and ones to pack. Packed are shares of less than a
/// byte that are all of their SubDevice in this direction, unless it may be absent or its FMMUs map
/// whole bytes only.
pub(super) fn divided(group: &[Share]) -> (Vec<Share>, Vec<Share>) {
    let is_like = |a: &Share, b: &Share| (a.position, a.direction) == (b.position, b.direction);
    let is_whole = |share: &Share| {
        let alike = group.iter().filter(|other| is_like(share, other)).count();
        !(1..8).contains(&share.bits) || share.is_loose || !share.maps_bits || alike > 1
    };
    group.iter().partition(|share| is_whole(share))
}
