//! Outputs of a SubDevice, read from passing frames without waiting for its application.
//!
//! Simulated applications step every 250 us; a real output terminal switches while the frame
//! passes. So the probe reads the frame itself, by the SubDevice's FMMUs.
//!
//! Simplifications: changes of FMMUs while the SubDevice is in Op are ignored, and outputs written
//! by physical addresses or mapped by a second FMMU are not seen.

use ethercat::al::AlState;
use ethercat::register;
use ethercat::register::fmmu::{self, Fmmu, FmmuDirection};
use ethercat::wire::frame::places;

use simulator::Segment;

/// Largest number of FMMUs of an ESC.
const FMMUS: u16 = 16;

/// Some of the outputs of one SubDevice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputBits {
    /// Position of the SubDevice.
    pub(super) position: usize,
    /// First bit.
    pub(super) first: u32,
    /// Number of bits, at most 63.
    pub(super) count: u32,
}

/// Reads outputs of one SubDevice from passing frames.
#[derive(Clone, Debug)]
pub(super) struct OutputProbe {
    bits: OutputBits,
    /// FMMU of its outputs, while it is in Op.
    outputs: Option<Fmmu>,
}

impl OutputProbe {
    pub(super) fn new(bits: OutputBits) -> Self {
        Self { bits, outputs: None }
    }

    /// Outputs after `frame` has passed, lowest bit first; `None` if it carries none for them, or
    /// if the SubDevice is not in Op and keeps them low.
    pub(super) fn levels(&mut self, segment: &Segment, frame: &[u8]) -> Option<u64> {
        let device = segment.sub_devices().get(self.bits.position)?;
        if device.al_status().al_state() != Some(AlState::Op) {
            self.outputs = None;
            return None;
        }
        if self.outputs.is_none() {
            let mut registers = [0; fmmu::LENGTH as usize];
            self.outputs = (0..FMMUS).find_map(|number| {
                device.peek(register::FMMU + number * fmmu::LENGTH, &mut registers);
                Fmmu::parse(&registers).filter(|it| {
                    it.active && matches!(it.direction, FmmuDirection::Write | FmmuDirection::ReadWrite)
                })
            });
        }
        let outputs = self.outputs?;
        places(frame).find_map(|place| {
            let command = place.header.command;
            if !command.is_logical() || !command.writes() {
                return None;
            }
            let offset = outputs.logical_address.checked_sub(place.header.address)?;
            let data = frame.get(place.data())?;
            levels(data.get(usize::try_from(offset).ok()?..)?, outputs, self.bits)
        })
    }
}

/// Levels of the `wanted` bits that `fmmu` maps, from the bytes that begin with its first; `None`
/// if they are not all there.
fn levels(bytes: &[u8], fmmu: Fmmu, wanted: OutputBits) -> Option<u64> {
    let count = wanted.count.min(fmmu.bit_length().saturating_sub(wanted.first)).min(63);
    let first = u32::from(fmmu.logical_start_bit) + wanted.first;
    let (begin, end) = ((first / 8) as usize, (first + count).div_ceil(8) as usize);
    let mut wide = [0; 16];
    let there = bytes.get(begin..end)?;
    wide[..there.len()].copy_from_slice(there);
    let mask = (1_u128 << count) - 1;
    u64::try_from(u128::from_le_bytes(wide) >> (first % 8) & mask).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_wherever_they_begin() {
        let mut fmmu = Fmmu::bytes(0, 0x0F00, 2, FmmuDirection::Write);
        let levels = |bytes: &[u8], fmmu, first, count| {
            levels(bytes, fmmu, OutputBits { position: 0, first, count })
        };
        assert_eq!(levels(&[0x34, 0x12, 0xFF], fmmu, 0, 16), Some(0x1234));
        assert_eq!(levels(&[0x34, 0x12], fmmu, 0, 12), Some(0x234));
        assert_eq!(levels(&[0x34, 0x12], fmmu, 4, 8), Some(0x23));
        assert_eq!(levels(&[0x34, 0x12], fmmu, 12, 8), Some(0x1), "as far as they go");
        assert_eq!(levels(&[0x34], fmmu, 0, 16), None, "cut off");
        (fmmu.length, fmmu.logical_start_bit, fmmu.logical_end_bit) = (2, 6, 1);
        assert_eq!(levels(&[0b1100_0000, 0b01], fmmu, 0, 16), Some(0b0111), "four bits over a byte's end");
    }
}
