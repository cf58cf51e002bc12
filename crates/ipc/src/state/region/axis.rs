//! An axis in words.

use crate::state::{Axis, AxisDetails, AxisMode, CyclicMode};

/// Decodes axes from their words.
pub fn decode_axes(words: &[u64]) -> impl Iterator<Item = Axis> + '_ {
    words.chunks_exact(AXIS).map(axis)
}

#[inline]
pub(crate) fn axis_words(axis: &Axis) -> [u64; AXIS] {
    let AxisDetails { statusword, homed_by_hand, missed, waits, held, ignored, .. } = axis.details;
    let details = &axis.details;
    let (counts, per_radian) = details.counts.unwrap_or_default();
    let [moved_from, moved_to] = details.moved.unwrap_or_default();
    let place = |index: Option<u16>| u64::from(index.map_or(0, |place| place.saturating_add(1)));
    let (mode, given) = ignored.map_or((0, 0), |(mode, given)| (mode as u64 + 1, given as u64 + 1));
    [
        u64::from(axis.drive_state)
            | u64::from(axis.phase) << 8
            | u64::from(axis.fresh) << 16
            | u64::from(axis.ended) << 17
            | u64::from(axis.brake_level & 0b111) << 18
            | u64::from(axis.quick_stop & QUICK_STOP) << 21
            | u64::from(axis.homed) << 24
            | u64::from(axis.memory_error.min(0x7F)) << 25
            | u64::from(axis.stop) << 32
            | place(axis.stopped_with) << 40
            | u64::from(axis.mode as u8) << 56,
        axis.position.to_bits(),
        axis.velocity.to_bits(),
        axis.effort.to_bits(),
        axis.target_position.to_bits(),
        axis.target_velocity.to_bits(),
        axis.target_effort.to_bits(),
        u64::from(axis.error_code) | place(axis.interlock) << 16 | u64::from(axis.stalled) << 32,
        u64::from(statusword)
            | u64::from(details.is_homing) << 16
            | u64::from(details.was_enabled) << 17
            | u64::from(details.counts.is_some()) << 18
            | u64::from(details.measures_torque) << 19
            | u64::from(details.is_absent) << 20
            | u64::from(details.is_mode_known) << 21
            | u64::from(details.overshoot.is_some()) << 22
            | u64::from(details.moved.is_some()) << 23
            | u64::from(details.interlock_permits) << 24
            | u64::from(details.interlock_level & 0b111) << 25
            | mode << 28
            | given << 32
            | place(axis.brake_input) << 48,
        u64::from(missed) | u64::from(waits) << 32,
        u64::from(counts as u32) | u64::from(held) << 32,
        per_radian.to_bits(),
        details.holds_at.to_bits(),
        details.overshoot.unwrap_or_default().to_bits(),
        moved_from.to_bits(),
        moved_to.to_bits(),
        homed_by_hand.into(),
    ]
}

pub(crate) fn axis(words: &[u64]) -> Axis {
    let number = |index: usize| f64::from_bits(words[index]);
    let place = |bits: u64| (bits as u16).checked_sub(1);
    Axis {
        drive_state: words[0] as u8,
        phase: (words[0] >> 8) as u8,
        fresh: words[0] >> 16 & 1 != 0,
        ended: words[0] >> 17 & 1 != 0,
        brake_level: (words[0] >> 18) as u8 & 0b111,
        brake_input: place(words[8] >> 48),
        homed: words[0] >> 24 & 1 != 0,
        memory_error: (words[0] >> 25) as u8 & 0x7F,
        stop: (words[0] >> 32) as u8,
        quick_stop: (words[0] >> 21) as u8 & QUICK_STOP,
        stopped_with: place(words[0] >> 40),
        mode: (words[0] >> 56) as u8 as i8,
        position: number(1),
        velocity: number(2),
        effort: number(3),
        target_position: number(4),
        target_velocity: number(5),
        target_effort: number(6),
        error_code: words[7] as u16,
        interlock: place(words[7] >> 16),
        stalled: (words[7] >> 32) as u32,
        details: axis_details(words),
    }
}

fn axis_details(words: &[u64]) -> AxisDetails {
    let number = |index: usize| f64::from_bits(words[index]);
    let is = |bit: u32| words[8] >> bit & 1 != 0;
    let code = |bits: u64| (bits as usize & 0xF).checked_sub(1);
    let mode = code(words[8] >> 28).and_then(|place| AxisMode::ALL.get(place));
    let given = code(words[8] >> 32).and_then(|place| CyclicMode::ALL.get(place));
    AxisDetails {
        statusword: words[8] as u16,
        is_homing: is(16),
        was_enabled: is(17),
        measures_torque: is(19),
        is_absent: is(20),
        is_mode_known: is(21),
        interlock_permits: is(24),
        interlock_level: (words[8] >> 25) as u8 & 0b111,
        ignored: mode.copied().zip(given.copied()),
        missed: words[9] as u32,
        waits: (words[9] >> 32) as u32,
        held: (words[10] >> 32) as u32,
        counts: is(18).then(|| (words[10] as i32, number(11))),
        holds_at: number(12),
        overshoot: is(22).then(|| number(13)),
        moved: is(23).then(|| [number(14), number(15)]),
        homed_by_hand: words[16] as u32,
    }
}

/// Words of an axis.
pub const AXIS: usize = 17;

/// Words of the details of an axis, the last ones of it.
pub(super) const DETAILS: usize = 9;

/// Bits of the step after a quick stop that was not carried out.
const QUICK_STOP: u8 = 7;
