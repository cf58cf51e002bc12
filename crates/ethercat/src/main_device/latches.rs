//! Latch inputs of a SubDevice: the times of their edges (ESC data sheet, section I, 9.2.4;
//! registers 0x09A8 to 0x09CF).

use crate::register::dc::{LATCH_INPUTS, LATCH_STATUS, LATCH_TIMES};
use crate::wire::read_u64;

use super::clock;

/// Latch inputs of a SubDevice, as they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latches {
    /// LATCH0 and LATCH1.
    pub inputs: [LatchInput; LATCH_INPUTS],
}

/// A latch input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatchInput {
    /// Level of its pin.
    pub high: bool,
    /// Rising edge.
    pub rising: LatchEdge,
    /// Falling edge.
    pub falling: LatchEdge,
}

/// Edge of a latch input: the newest one, or with [`super::LatchMode`] the first one since the
/// times were read before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatchEdge {
    /// Its time in the time of the bus, ns; 0 if there was none. A 32-bit clock has the low bits:
    /// an edge that was 4.29 s old or more when it was read first appears too late by a multiple of
    /// that. Without set clocks it is only these bits.
    pub time: u64,
    /// True if it came since the times were read before.
    pub is_new: bool,
}

/// Bytes of the registers.
pub(super) const LENGTH: usize = (LATCH_TIMES - LATCH_STATUS) as usize + 2 * LATCH_INPUTS * 8;

/// Time of the bus by which a clock of 32 bits is extended: it may be ahead of it by so much.
const AHEAD: u64 = 100_000_000;

/// Parses the registers from the status on. One read of status and times loses no edge: an edge
/// between the two shows by its time, though its flag is cleared by the read. `now`: about the time
/// of the bus, for a 32-bit clock.
pub(super) fn parse(registers: &[u8], before: Option<Latches>, now: Option<u64>) -> Option<Latches> {
    let before = before.unwrap_or_default();
    let mut latches = Latches::default();
    for (number, input) in latches.inputs.iter_mut().enumerate() {
        let status = *registers.get(number)?;
        let known = before.inputs[number];
        let edge = |edge: usize, before: LatchEdge| {
            let shown = read_u64(registers, LATCH_INPUTS + (2 * number + edge) * 8)?;
            let is_other = match now {
                Some(_) => shown as u32 != before.time as u32,
                None => shown != before.time,
            };
            // After a power loss it has forgotten the edge that was reported.
            let is_new = status >> edge & 1 != 0 || is_other && shown != 0;
            let time = match now {
                Some(_) if !is_new => before.time,
                Some(now) if shown != 0 => clock::latest(now.wrapping_add(AHEAD), shown as u32),
                _ => shown,
            };
            Some(LatchEdge { time, is_new })
        };
        input.rising = edge(0, known.rising)?;
        input.falling = edge(1, known.falling)?;
        input.high = status & 0x04 != 0;
    }
    Some(latches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(status: [u8; 2], times: [u64; 4]) -> [u8; LENGTH] {
        let mut registers = [0; LENGTH];
        registers[..2].copy_from_slice(&status);
        for (place, time) in registers[2..].chunks_exact_mut(8).zip(times) {
            place.copy_from_slice(&time.to_le_bytes());
        }
        registers
    }

    #[test]
    fn an_edge_is_new_by_its_flag_or_by_another_time() {
        let told = |latches: Latches| {
            let edges =
                latches.inputs.map(|it| [it.rising, it.falling].map(|edge| (edge.time, edge.is_new)));
            (edges.concat(), latches.inputs.map(|it| it.high))
        };
        let first = parse(&registers([0x04, 0x00], [11, 0, 0, 14]), None, None).unwrap();
        let edges = vec![(11, true), (0, false), (0, false), (14, true)];
        assert_eq!(told(first), (edges, [true, false]));
        let again = parse(&registers([0x00, 0x06], [11, 0, 13, 14]), Some(first), None).unwrap();
        let edges = vec![(11, false), (0, false), (13, true), (14, true)];
        assert_eq!(told(again), (edges, [false, true]));
        assert_eq!(parse(&registers([0; 2], [0; 4])[..LENGTH - 1], None, None), None);
    }

    /// Edges before and behind a wrap, and one that is read again a wrap later.
    #[test]
    fn edges_of_a_32_bit_clock_are_in_bus_time() {
        let wrap = 5_u64 << 32;
        let read =
            |times: [u64; 4], before, now| parse(&registers([0; 2], times), before, Some(now)).unwrap();
        let first = read([u64::from(u32::MAX), 7, 0, 0], None, wrap + 20);
        let [input, other] = first.inputs;
        assert_eq!((input.rising.time, input.falling.time), (wrap - 1, wrap + 7));
        assert_eq!((other.rising, other.falling), (LatchEdge::default(), LatchEdge::default()));
        let again = read([u64::from(u32::MAX), 9, 0, 0], Some(first), wrap + (1 << 32) + 5);
        let told = again.inputs[0];
        assert_eq!(told.rising, LatchEdge { time: wrap - 1, is_new: false });
        assert_eq!(told.falling, LatchEdge { time: wrap + (1 << 32) + 9, is_new: true });
    }
}
