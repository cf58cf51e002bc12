//! Expectations of `examples/six-axis.toml`, and the motion it makes the drives do.

use std::process::{Child, Command, Stdio};

use super::bus::Error;

/// Drives on the line.
pub const SUB_DEVICES: usize = 6;
pub const VENDOR_ID: u32 = 0xFFFF_0B01;
pub const PRODUCT_CODE: u32 = 0x0402;
pub const REVISION: u32 = 0x0001_0000;
/// Bytes of outputs, and as many of inputs, of each drive.
pub const BYTES: usize = 12;
pub const CYCLES: usize = 2000;
/// Cycles in Op for the second time, and after faults.
pub const CYCLES_AGAIN: usize = 500;
/// Position of the drive whose process data watchdog expires.
pub const FALLEN: usize = 2;
/// Position of the drive without power; no frame passes it.
pub const POWERLESS: usize = 4;
pub const BEHIND: [usize; 2] = [4, 5];
/// Cyclic synchronous position (CiA 402-2, 0x6060).
pub const CYCLIC_SYNCHRONOUS_POSITION: i8 = 8;
/// Distance the target moves in the whole run, in counts.
const MOVE: i32 = 20_000;

/// Enables one drive by its statusword (CiA 402-2, device control) and then moves it slowly.
#[derive(Default)]
pub struct Axis {
    statusword: u16,
    position: i32,
    target: Option<i32>,
    enabled_cycles: usize,
}

impl Axis {
    /// The drive's next outputs, from its newest inputs; both are [`BYTES`] long.
    pub fn outputs(&mut self, inputs: &[u8]) -> [u8; BYTES] {
        self.statusword = u16::from_le_bytes([inputs[0], inputs[1]]);
        self.position = i32::from_le_bytes([inputs[2], inputs[3], inputs[4], inputs[5]]);
        let is_enabled = self.statusword & 0x6F == 0x27;
        self.enabled_cycles += usize::from(is_enabled);
        let moved = self.target.filter(|_| is_enabled).map(|target| target + MOVE / CYCLES as i32);
        let target = *self.target.insert(moved.unwrap_or(self.position));
        let mut outputs = [0; BYTES];
        outputs[..2].copy_from_slice(&self.controlword().to_le_bytes());
        outputs[2..6].copy_from_slice(&target.to_le_bytes());
        outputs
    }

    /// Checks that it was enabled in all of these cycles but the first, and followed its target.
    ///
    /// # Errors
    /// The difference, as expected and found.
    pub fn check(&self, place: usize, cycles: usize) -> Result<(), Error> {
        let lag = (self.target.unwrap_or(self.position) - self.position).abs();
        let enabling = CYCLES / 10;
        let enabled = self.enabled_cycles > cycles - enabling;
        expect(
            place,
            &format!("all but {enabling} of {cycles} cycles in Operation Enabled"),
            enabled,
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

/// Faults on a running `onbeat simulate`.
pub struct Simulator {
    /// The program.
    pub onbeat: String,
    /// The name by which `onbeat fault` finds it.
    pub name: String,
}

impl Simulator {
    /// Asks for a fault without waiting: process data has to go on.
    ///
    /// # Errors
    /// The program does not start.
    pub fn begin(&self, fault: &str) -> Result<Fault, Error> {
        let mut command = Command::new(&self.onbeat);
        command.args(["fault", "--of", &self.name]).args(fault.split(' '));
        let asked = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        Ok(Fault { asked, words: fault.to_owned() })
    }
}

/// A fault that was asked for.
pub struct Fault {
    asked: Child,
    words: String,
}

impl Fault {
    /// Waits until it has taken place.
    ///
    /// # Errors
    /// It was refused.
    pub fn has_taken_place(mut self) -> Result<(), Error> {
        let status = self.asked.wait()?;
        let refused = || format!("`onbeat fault {}` ended with {status}", self.words).into();
        status.success().then_some(()).ok_or_else(refused)
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
