//! Expectations of the judge on `examples/six-axis.toml`, and the motion it makes the drives do.

use super::bus::Error;

/// Drives on the line.
pub const SUB_DEVICES: usize = 6;
pub const VENDOR_ID: u32 = 0xFFFF_0B01;
pub const PRODUCT_CODE: u32 = 0x0402;
pub const REVISION: u32 = 0x0001_0000;
/// Bytes of outputs, and as many of inputs, of each drive.
pub const BYTES: usize = 12;
pub const CYCLES: usize = 2000;
/// Cyclic synchronous position (CiA 402-2, 0x6060).
pub const CYCLIC_SYNCHRONOUS_POSITION: i8 = 8;
/// Distance the target moves in the whole run, in counts.
const MOVE: i32 = 20_000;

/// Enables one drive by its statusword (CiA 402-2, device control) and then moves it slowly.
#[derive(Default)]
pub struct Axis {
    statusword: u16,
    position: i32,
    target: i32,
    enabled_cycles: usize,
}

impl Axis {
    /// The drive's next outputs, from its newest inputs; both are [`BYTES`] long.
    pub fn outputs(&mut self, inputs: &[u8]) -> [u8; BYTES] {
        self.statusword = u16::from_le_bytes([inputs[0], inputs[1]]);
        self.position = i32::from_le_bytes([inputs[2], inputs[3], inputs[4], inputs[5]]);
        if self.statusword & 0x6F == 0x27 {
            self.enabled_cycles += 1;
            self.target += MOVE / CYCLES as i32;
        } else {
            self.target = self.position;
        }
        let mut outputs = [0; BYTES];
        outputs[..2].copy_from_slice(&self.controlword().to_le_bytes());
        outputs[2..6].copy_from_slice(&self.target.to_le_bytes());
        outputs
    }

    /// Checks that it was enabled for nine tenths of the run and followed its target.
    ///
    /// # Errors
    /// The difference, as expected and found.
    pub fn check(&self, place: usize) -> Result<(), Error> {
        let lag = (self.target - self.position).abs();
        expect(
            place,
            "nine tenths of all cycles in Operation Enabled",
            self.enabled_cycles > CYCLES * 9 / 10,
            true,
        )?;
        expect(place, &format!("following error {lag} below {}", MOVE / 10), lag < MOVE / 10, true)
    }

    fn controlword(&self) -> u16 {
        match self.statusword {
            word if word & 0x4F == 0x40 => 0x06, // Switch On Disabled
            word if word & 0x6F == 0x21 => 0x07, // Ready To Switch On
            word if word & 0x4F == 0x08 => 0x80, // Fault
            _ => 0x0F,
        }
    }
}

/// One sentence if the two differ.
///
/// # Errors
/// That sentence.
pub fn expect<T: PartialEq + std::fmt::Debug>(
    place: usize,
    what: &str,
    found: T,
    wanted: T,
) -> Result<(), Error> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("position {place}, {what}: expected {wanted:#x?}, found {found:#x?}").into())
}
