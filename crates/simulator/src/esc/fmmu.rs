//! FMMUs: mapping of logical addresses to physical memory, bit by bit (ETG.1000.4, 6.9; ESC data
//! sheet, section I, 7).

use core::ops::Range;

use ethercat::register::fmmu::{Fmmu, FmmuDirection};

/// One FMMU, prepared for frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FmmuUnit {
    fmmu: Fmmu,
    /// Logical bytes that it maps; empty if it is not active.
    start: u64,
    end: u64,
}

/// Part of a datagram that an FMMU maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// Whole bytes: `datagram` bytes map to memory from `physical` on.
    Bytes { datagram: Range<usize>, physical: u16 },
    /// Single bits, from bit `datagram_bit` of the datagram's data and `physical_bit` of the memory
    /// from `physical` on.
    Bits { datagram_bit: usize, physical: u16, physical_bit: usize, bits: usize },
}

impl FmmuUnit {
    pub(crate) const OFF: Self = Self { fmmu: Fmmu::bytes(0, 0, 0, FmmuDirection::None), start: 0, end: 0 };

    /// FMMU from the bytes of its registers.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        match Fmmu::parse(bytes) {
            Some(fmmu) if fmmu.active && fmmu.bit_length() > 0 => {
                let start = u64::from(fmmu.logical_address);
                Self { fmmu, start, end: start + u64::from(fmmu.length) }
            }
            _ => Self::OFF,
        }
    }

    /// Logical bytes that it maps; empty if it is off.
    pub(crate) fn span(&self) -> Range<u64> {
        self.start..self.end
    }

    pub(crate) fn reads(&self) -> bool {
        matches!(self.fmmu.direction, FmmuDirection::Read | FmmuDirection::ReadWrite)
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self.fmmu.direction, FmmuDirection::Write | FmmuDirection::ReadWrite)
    }

    /// Mapping of a datagram with `length` bytes of data at logical address `address`.
    pub(crate) fn map(&self, address: u32, length: usize) -> Option<Mapping> {
        let datagram_start = u64::from(address);
        let first = self.start.max(datagram_start);
        let last = self.end.min(datagram_start + length as u64);
        if first >= last {
            return None;
        }
        let fmmu = &self.fmmu;
        if fmmu.logical_start_bit == 0 && fmmu.logical_end_bit == 7 && fmmu.physical_start_bit == 0 {
            let datagram = (first - datagram_start) as usize..(last - datagram_start) as usize;
            let physical = fmmu.physical_address.wrapping_add((first - self.start) as u16);
            return Some(Mapping::Bytes { datagram, physical });
        }
        // Bits from the start of the FMMU's first logical byte.
        let start_bit = usize::from(fmmu.logical_start_bit);
        let mapped = start_bit..start_bit + fmmu.bit_length() as usize;
        let first_bit = mapped.start.max((first - self.start) as usize * 8);
        let last_bit = mapped.end.min((last - self.start) as usize * 8);
        if first_bit >= last_bit {
            return None;
        }
        let into_memory = first_bit - mapped.start + usize::from(fmmu.physical_start_bit);
        Some(Mapping::Bits {
            datagram_bit: (self.start * 8 + first_bit as u64 - datagram_start * 8) as usize,
            physical: fmmu.physical_address.wrapping_add((into_memory / 8) as u16),
            physical_bit: into_memory % 8,
            bits: last_bit - first_bit,
        })
    }
}

/// Copies `bits` bits, both sides counted from bit 0 of their first byte.
pub(crate) fn copy_bits(
    source: &[u8],
    source_bit: usize,
    target: &mut [u8],
    target_bit: usize,
    bits: usize,
) {
    for bit in 0..bits {
        let (from, to) = (source_bit + bit, target_bit + bit);
        let mask = 1 << (to % 8);
        if source[from / 8] >> (from % 8) & 1 != 0 {
            target[to / 8] |= mask;
        } else {
            target[to / 8] &= !mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(start_bit: u8, end_bit: u8, physical_bit: u8, length: u16) -> FmmuUnit {
        let fmmu = Fmmu {
            logical_start_bit: start_bit,
            logical_end_bit: end_bit,
            physical_start_bit: physical_bit,
            ..Fmmu::bytes(0x1000, 0x1800, length, FmmuDirection::Write)
        };
        FmmuUnit::new(&fmmu.emit())
    }

    #[test]
    fn datagrams_that_overlap_in_part_map_that_part() {
        let it = unit(0, 7, 0, 8);
        let map = |address, length| it.map(address, length);
        assert_eq!(map(0x1000, 8), Some(Mapping::Bytes { datagram: 0..8, physical: 0x1800 }));
        assert_eq!(map(0x0FFC, 8), Some(Mapping::Bytes { datagram: 4..8, physical: 0x1800 }));
        assert_eq!(map(0x1006, 8), Some(Mapping::Bytes { datagram: 0..2, physical: 0x1806 }));
        assert_eq!(map(0x0FF8, 8), None);
        assert_eq!(map(0x1008, 8), None);
        assert_eq!(unit(7, 0, 0, 1).map(0x1000, 1), None, "the end lies before the start");
    }

    #[test]
    fn bits_move_to_other_bits() {
        // Bits 6 of byte 0 to 1 of byte 1: four bits, onto bits 3 to 6 of one physical byte.
        let it = unit(6, 1, 3, 2);
        let mapping = it.map(0x0FFF, 4);
        let expected = Mapping::Bits { datagram_bit: 14, physical: 0x1800, physical_bit: 3, bits: 4 };
        assert_eq!(mapping, Some(expected));
        // Only the second logical byte: two bits, the upper half of the physical ones.
        let mapping = it.map(0x1001, 1);
        let expected = Mapping::Bits { datagram_bit: 0, physical: 0x1800, physical_bit: 5, bits: 2 };
        assert_eq!(mapping, Some(expected));
    }

    #[test]
    fn bit_copies_leave_their_neighbours_alone() {
        let mut target = [0b1010_1010, 0xFF];
        copy_bits(&[0b0011_0100], 2, &mut target, 6, 4);
        assert_eq!(target, [0b0110_1010, 0xFF]);
    }

    #[test]
    fn the_top_of_the_logical_space_does_not_wrap() {
        let fmmu = Fmmu::bytes(u32::MAX - 1, 0x1000, 8, FmmuDirection::Read);
        let it = FmmuUnit::new(&fmmu.emit());
        assert_eq!(it.map(u32::MAX, 4), Some(Mapping::Bytes { datagram: 0..4, physical: 0x1001 }));
        assert_eq!(it.map(0, 4), None);
    }
}
