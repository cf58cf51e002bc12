//! Fieldbus memory management units: logical addresses onto physical memory, bit by bit
//! (ETG.1000.4, 6.9, Table 56).

use crate::wire::{read_u16, read_u32};

/// Bytes of one FMMU's registers.
pub const LENGTH: u16 = 16;

/// Commands that an FMMU answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FmmuDirection {
    /// Mapped for neither.
    None,
    /// Logical reads: inputs.
    Read,
    /// Logical writes: outputs.
    Write,
    /// Both.
    ReadWrite,
}

/// One FMMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fmmu {
    /// First logical address.
    pub logical_address: u32,
    /// Logical bytes touched, first and last counted whole even where only some bits are mapped.
    pub length: u16,
    /// First mapped bit of the first logical byte, 0 to 7.
    pub logical_start_bit: u8,
    /// Last mapped bit of the last logical byte, 0 to 7.
    pub logical_end_bit: u8,
    /// First physical address.
    pub physical_address: u16,
    /// First mapped bit of the first physical byte, 0 to 7.
    pub physical_start_bit: u8,
    /// Commands that it answers.
    pub direction: FmmuDirection,
    /// True if it is active at all.
    pub active: bool,
}

impl Fmmu {
    /// Maps whole bytes.
    #[must_use]
    pub const fn bytes(
        logical_address: u32,
        physical_address: u16,
        length: u16,
        direction: FmmuDirection,
    ) -> Self {
        Self {
            logical_address,
            length,
            logical_start_bit: 0,
            logical_end_bit: 7,
            physical_address,
            physical_start_bit: 0,
            direction,
            active: true,
        }
    }

    /// Bits mapped in all; 0 if the end lies before the start.
    #[must_use]
    pub const fn bit_length(&self) -> u32 {
        let last = (self.length as u32 * 8 + self.logical_end_bit as u32).saturating_sub(7);
        last.saturating_sub(self.logical_start_bit as u32)
    }

    /// The registers' bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LENGTH as usize] {
        let mut bytes = [0; LENGTH as usize];
        bytes[0..4].copy_from_slice(&self.logical_address.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.length.to_le_bytes());
        bytes[6] = self.logical_start_bit & 7;
        bytes[7] = self.logical_end_bit & 7;
        bytes[8..10].copy_from_slice(&self.physical_address.to_le_bytes());
        bytes[10] = self.physical_start_bit & 7;
        bytes[11] = match self.direction {
            FmmuDirection::None => 0,
            FmmuDirection::Read => 1,
            FmmuDirection::Write => 2,
            FmmuDirection::ReadWrite => 3,
        };
        bytes[12] = u8::from(self.active);
        bytes
    }

    /// The FMMU in the first 16 bytes, or `None` if there are fewer.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..usize::from(LENGTH))?;
        Some(Self {
            logical_address: read_u32(bytes, 0)?,
            length: read_u16(bytes, 4)?,
            logical_start_bit: bytes[6] & 7,
            logical_end_bit: bytes[7] & 7,
            physical_address: read_u16(bytes, 8)?,
            physical_start_bit: bytes[10] & 7,
            direction: match bytes[11] & 3 {
                0 => FmmuDirection::None,
                1 => FmmuDirection::Read,
                2 => FmmuDirection::Write,
                _ => FmmuDirection::ReadWrite,
            },
            active: bytes[12] & 1 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_bit_length() {
        let mut fmmu = Fmmu::bytes(0x1_0000, 0x1100, 12, FmmuDirection::Write);
        assert_eq!(Fmmu::parse(&fmmu.emit()), Some(fmmu));
        assert_eq!(fmmu.bit_length(), 96);
        fmmu.length = 1;
        (fmmu.logical_start_bit, fmmu.logical_end_bit) = (4, 7);
        assert_eq!(fmmu.bit_length(), 4);
    }
}
