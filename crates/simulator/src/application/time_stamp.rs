//! Two digital inputs as of an EL1252: their levels, and the system times of their edges, which the
//! latch unit of the ESC takes. The time stamps are no process data of an application: a
//! SyncManager of the SII lies over the ESC's own registers.
//!
//! Simplification: an edge of an output is seen when the frame that sets it has passed, any other
//! at a step of the simulation.

use ethercat::pdo::{MAPPING_INPUTS, Pdo, PdoMapping};
use ethercat::time::Instant;

use super::digital::Wires;
use super::fixed_pdo;
use super::sii::{entry, padding};
use super::{Application, ProcessDataLengths};
use crate::coe::DataType;

/// Latch status and times of both inputs in the ESC (ESC data sheet, section II, 2.22.5).
pub const STAMPS: u16 = 0x09AE;

/// Object of the registers: sub-indices are their low bytes.
const REGISTERS: u16 = 0x1D09;

/// The terminal.
#[derive(Clone, Debug)]
pub struct TimeStampedInputs {
    wires: Wires,
    /// Levels of the wires at the last step.
    seen: [bool; 2],
    /// Levels of the inputs: of the wires, until set otherwise.
    levels: [bool; 2],
}

impl TimeStampedInputs {
    /// A terminal that reads the first two of `wires`.
    #[must_use]
    pub fn new(wires: Wires) -> Self {
        Self { wires, seen: [false; 2], levels: [false; 2] }
    }
}

impl Application for TimeStampedInputs {
    fn process_data_lengths(&self) -> ProcessDataLengths {
        ProcessDataLengths { outputs: 0, inputs: 1 }
    }

    fn is_logic(&self) -> bool {
        true
    }

    fn step(&mut self, _now: Instant, _outputs: Option<&[u8]>, inputs: &mut [u8]) {
        let wires = [0, 1].map(|input| self.wires.levels() >> input & 1 != 0);
        for (level, (seen, wire)) in self.levels.iter_mut().zip(self.seen.iter_mut().zip(wires)) {
            if std::mem::replace(seen, wire) != wire {
                *level = wire;
            }
        }
        if let Some(byte) = inputs.first_mut() {
            *byte = u8::from(self.levels[0]) | u8::from(self.levels[1]) << 1;
        }
    }

    fn latch_inputs(&self) -> Option<[bool; 2]> {
        Some(self.levels)
    }

    fn set_latch_input(&mut self, input: usize, high: bool) {
        if let Some(level) = self.levels.get_mut(input) {
            *level = high;
        }
    }
}

/// PDOs: the levels at SyncManager 0, the time stamps at 1.
#[must_use]
pub fn mapping() -> PdoMapping {
    let input = |channel: u8| entry(0x6000, channel, DataType::Boolean, "Input");
    let register = |address: u8, data_type, name: &str| entry(REGISTERS, address, data_type, name);
    let time = DataType::Unsigned(64);
    let stamps = vec![
        register(0xAE, DataType::U8, "Status1"),
        register(0xAF, DataType::U8, "Status2"),
        register(0xB0, time, "LatchPos1"),
        register(0xB8, time, "LatchNeg1"),
        register(0xC0, time, "LatchPos2"),
        register(0xC8, time, "LatchNeg2"),
    ];
    let inputs: Vec<Pdo> = vec![
        fixed_pdo(MAPPING_INPUTS, 0, "Channel 1", vec![input(1)]),
        fixed_pdo(MAPPING_INPUTS + 1, 0, "Channel 2", vec![input(2), padding(6)]),
        fixed_pdo(MAPPING_INPUTS + 0x13, 1, "Latch", stamps),
    ];
    PdoMapping { outputs: Vec::new(), inputs }
}
