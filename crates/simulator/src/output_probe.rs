//! Outputs of a SubDevice, read from passing frames without waiting for its application.
//!
//! Applications step every [`STEP`](crate::sub_device::STEP); a real output terminal switches while the frame passes.
//! So the probe reads the frame itself, by the SubDevice's FMMUs.
//!
//! Simplifications: changes of FMMUs while the SubDevice is in Op are ignored, and outputs written by
//! physical addresses are not seen.

use ethercat::al::AlState;
use ethercat::register;
use ethercat::register::fmmu::{self, Fmmu, FmmuDirection};
use ethercat::wire::frame::places;

use crate::Segment;

/// Largest number of FMMUs of an ESC.
const FMMUS: u16 = 16;

/// Reads the outputs of one SubDevice from passing frames.
#[derive(Clone, Debug)]
pub struct OutputProbe {
    position: usize,
    bits: u32,
    /// FMMU of its outputs, while it is in Op.
    outputs: Option<Fmmu>,
}

impl OutputProbe {
    /// A probe of the first `bits` (at most 63) outputs of the SubDevice at `position`.
    #[must_use]
    pub fn new(position: usize, bits: u32) -> Self {
        Self { position, bits: bits.min(63), outputs: None }
    }

    /// Outputs after `frame` has passed, lowest bit first; `None` if it carries none for them, or if the
    /// SubDevice is not in Op and keeps them low.
    pub fn levels(&mut self, segment: &Segment, frame: &[u8]) -> Option<u64> {
        let device = segment.sub_devices().get(self.position)?;
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

/// First `bits` that `fmmu` maps, from the bytes that begin with its first; `None` if they are not all
/// there.
fn levels(bytes: &[u8], fmmu: Fmmu, bits: u32) -> Option<u64> {
    let bits = bits.min(fmmu.bit_length());
    let shift = u32::from(fmmu.logical_start_bit);
    let length = (shift + bits).div_ceil(8) as usize;
    let mut wide = [0; 16];
    wide[..length].copy_from_slice(bytes.get(..length)?);
    let mask = (1_u128 << bits) - 1;
    u64::try_from(u128::from_le_bytes(wide) >> shift & mask).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_found_wherever_they_begin() {
        let mut fmmu = Fmmu::bytes(0, 0x0F00, 2, FmmuDirection::Write);
        assert_eq!(levels(&[0x34, 0x12, 0xFF], fmmu, 16), Some(0x1234));
        assert_eq!(levels(&[0x34, 0x12], fmmu, 12), Some(0x234));
        assert_eq!(levels(&[0x34], fmmu, 16), None, "cut off");
        (fmmu.length, fmmu.logical_start_bit, fmmu.logical_end_bit) = (2, 6, 1);
        assert_eq!(levels(&[0b1100_0000, 0b01], fmmu, 16), Some(0b0111), "four bits over a byte's end");
    }
}
