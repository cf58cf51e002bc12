//! The second barrier: objects of the drives that follow from the limits of their axes.
//!
//! | object | value |
//! |---|---|
//! | 0x607D | `limits.position`, and the distance of a stop from full speed beyond |
//! | 0x607F | 1.2 times `limits.velocity` |
//! | 0x6065, 0x6066 | 1.5 times `following_error` |
//! | 0x6072 | `limits.torque`; in the process data also `jog.torque` |
//! | 0x6085 | `limits.stop_deceleration` |
//! | 0x6084 | the same in `cst` and `tq`, where a halt stops the axis |
//! | 0x605A to 0x605E | read, and compared with what a stop needs |

use ethercat::cia402::AxisMode;
use ethercat::cia402::object::{
    DISABLE_OPERATION_OPTION_CODE, FAULT_REACTION_OPTION_CODE, FOLLOWING_ERROR_TIME_OUT,
    FOLLOWING_ERROR_WINDOW, HALT_OPTION_CODE, MAXIMUM_PROFILE_VELOCITY, MAXIMUM_TORQUE,
    PROFILE_DECELERATION, QUICK_STOP_DECELERATION, QUICK_STOP_OPTION_CODE, SHUTDOWN_OPTION_CODE,
    SI_UNIT_POSITION, SOFTWARE_POSITION_LIMIT, of_axis, of_first_axis,
};
use ethercat::main_device::{Barrier, BarrierTask, StartupSdo, UnitValue};
use motion::Radians;
use motion::homing::Homing;

use crate::model::{Axis, Encoder, RobotConfig, SubDevice, profile_objects};
use types::CyclicMode;

/// Object of the second barrier of an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriveBarrier {
    /// Place of the axis.
    pub axis: usize,
    /// Object index in the drive.
    pub index: u16,
    /// Sub-index.
    pub sub_index: u8,
    /// Value, or the reason that none is written.
    pub source: BarrierSource,
}

/// Source of the value of an object of the second barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BarrierSource {
    /// The limits of the axis: index of the access among the accesses to its SubDevice.
    Limits(usize, Barrier),
    /// The `startup` of its SubDevice writes it. `limits`: the weaker value that the limits allow,
    /// if `value` is weaker still.
    Startup {
        /// Value that is written.
        value: i64,
        /// Value of the limits, where that is stricter.
        limits: Option<i64>,
    },
    /// The cycle sends it: the value of the limits, except during a jog and in set-up mode.
    ProcessData(i64),
    /// Nothing is written, for this reason.
    None(&'static str),
}

impl RobotConfig {
    /// The second barrier of all axes with `drive_limits`, in their order.
    #[must_use]
    pub fn drive_barriers(&self) -> Vec<DriveBarrier> {
        let mut places = vec![0; self.bus.sub_devices.len()];
        let mut barriers = Vec::new();
        for (number, axis) in self.axes.iter().enumerate() {
            let Some(drive) = self.bus.sub_devices.get(axis.sub_device) else { continue };
            for (first, sub_index, task) in objects(axis) {
                let index = of_axis(first, axis.drive_axis);
                let sent = self.sent_by_cycle(drive, (index, sub_index), task);
                let usual = || source(axis, drive, (index, sub_index), task, &mut places[axis.sub_device]);
                let source = sent.unwrap_or_else(usual);
                barriers.push(DriveBarrier { axis: number, index, sub_index, source });
            }
        }
        barriers
    }
}

impl RobotConfig {
    /// Source of a value that the cycle sends in the process data.
    fn sent_by_cycle(
        &self,
        drive: &SubDevice,
        (index, sub_index): (u16, u8),
        task: Result<BarrierTask, &'static str>,
    ) -> Option<BarrierSource> {
        drive.explicit_mapping()?.output(index, sub_index)?;
        if of_first_axis(index) != MAXIMUM_TORQUE {
            return None;
        }
        if self.signals.named.iter().any(|it| it.gives(&drive.name, (index, sub_index))) {
            return Some(BarrierSource::None("a [[signal]] gives its value in the process data"));
        }
        Some(match task {
            Ok(BarrierTask::Write(value)) => BarrierSource::ProcessData(value.into()),
            Ok(_) => return None,
            Err(reason) => BarrierSource::None(reason),
        })
    }
}

/// Source of the value of one object. If it is accessed, `place` is its index among the accesses to
/// its SubDevice.
fn source(
    axis: &Axis,
    drive: &SubDevice,
    (index, sub_index): (u16, u8),
    task: Result<BarrierTask, &'static str>,
    place: &mut usize,
) -> BarrierSource {
    let length = length(index);
    let barrier = |task| Barrier { index, sub_index, length, task };
    if task == Ok(BarrierTask::Read) {
        *place += 1;
        return BarrierSource::Limits(*place - 1, barrier(BarrierTask::Read));
    }
    if let Some(written) = drive.startup.iter().rfind(|it| writes(it, index, sub_index)) {
        let of_limits = task.ok().and_then(|task| in_counts(axis, barrier(task)));
        let value = value(&barrier(BarrierTask::Read), written);
        let limits = of_limits.filter(|&limits| is_weaker(index, sub_index, value, limits));
        return BarrierSource::Startup { value, limits };
    }
    let is_mapped = drive.explicit_mapping().is_some_and(|it| it.output(index, sub_index).is_some());
    match task {
        _ if !axis.drive_limits => BarrierSource::None("drive_limits = false"),
        Err(reason) => BarrierSource::None(reason),
        Ok(_) if is_mapped => BarrierSource::None("it is in the process data"),
        Ok(task) => {
            *place += 1;
            BarrierSource::Limits(*place - 1, barrier(task))
        }
    }
}

/// Objects of the first axis of a drive, and their tasks.
fn objects(axis: &Axis) -> Vec<(u16, u8, Result<BarrierTask, &'static str>)> {
    let positions = positions(axis);
    let limit = |of: fn((i32, i32)) -> i32| positions.map(|it| BarrierTask::Write(of(it) as u32));
    let following = following_error(axis);
    let in_counts = |value: f64, unit: u16| {
        let milli = |value: f64| (value * 1000.0).round() as u64;
        let counts = value * axis.scale.counts_per_radian().abs();
        Ok(BarrierTask::WriteInUnit(UnitValue {
            unit: of_axis(unit, axis.drive_axis),
            milli_counts: milli(counts),
            milli_counts_per_revolution: milli(axis.counts_per_revolution),
            assumes_counts: counts_velocities(axis),
        }))
    };
    let limits = &axis.limits;
    let options = [
        QUICK_STOP_OPTION_CODE,
        SHUTDOWN_OPTION_CODE,
        DISABLE_OPERATION_OPTION_CODE,
        HALT_OPTION_CODE,
        FAULT_REACTION_OPTION_CODE,
    ];
    let mut objects = vec![
        (SOFTWARE_POSITION_LIMIT, 1, limit(|(lowest, _)| lowest)),
        (SOFTWARE_POSITION_LIMIT, 2, limit(|(_, highest)| highest)),
        (MAXIMUM_PROFILE_VELOCITY, 0, in_counts(limits.velocity.0 * FASTER, SI_UNIT_VELOCITY)),
        (FOLLOWING_ERROR_WINDOW, 0, following.map(|(window, _)| BarrierTask::Write(window))),
        (FOLLOWING_ERROR_TIME_OUT, 0, following.map(|(_, time)| BarrierTask::Write(time))),
        (MAXIMUM_TORQUE, 0, torque(axis)),
        (QUICK_STOP_DECELERATION, 0, in_counts(limits.deceleration.0, SI_UNIT_ACCELERATION)),
    ];
    if halts_by_profile(axis) {
        // In modes of torques the halt brakes, along this ramp.
        objects.push((PROFILE_DECELERATION, 0, in_counts(limits.deceleration.0, SI_UNIT_ACCELERATION)));
    }
    objects.extend(options.map(|index| (index, 0, Ok(BarrierTask::Read))));
    objects
}

/// Bytes of the value of an object.
fn length(index: u16) -> u8 {
    match of_first_axis(index) {
        QUICK_STOP_OPTION_CODE..=FAULT_REACTION_OPTION_CODE | FOLLOWING_ERROR_TIME_OUT | MAXIMUM_TORQUE => {
            2
        }
        _ => 4,
    }
}

/// Position limits in counts: the limits of the axis, and the distance beyond in which a stop from
/// full speed ends.
fn positions(axis: &Axis) -> Result<(i32, i32), &'static str> {
    let (lowest, highest) = axis.limits.position.ok_or("the axis has no position limits")?;
    let offset = match (axis.homing, axis.encoder) {
        (_, Some(Encoder::SingleTurn)) => {
            return Err("after a restart a single-turn encoder may count from another revolution");
        }
        (Homing::Absolute { offset }, _) => offset,
        (Homing::Drive { .. }, _) => return Err("before its homing the drive counts from another zero"),
        (Homing::Never, Some(Encoder::MultiTurn)) => Radians::ZERO,
        (Homing::Never | Homing::CurrentPosition { .. }, _) => {
            return Err("the place of its position 0 is set in the run");
        }
    };
    let velocity = axis.limits.velocity.0;
    let room = velocity * velocity / (2.0 * axis.limits.deceleration.0) + axis.limits.step.0;
    let counts = |position: f64| (position - offset.0) * axis.scale.counts_per_radian();
    let ends = [counts(lowest.0 - room), counts(highest.0 + room)];
    // A restart that shifts the count by whole ranges is accepted, and 0x607D would stay in place.
    let range = axis.position_sense.range.map_or(f64::INFINITY, |it| it.0);
    if (range * axis.scale.counts_per_radian().abs()).round() < COUNTS_OF_32_BITS {
        return Err("after a restart its drive may count from another range of its encoder");
    }
    let (lowest, highest) = (ends[0].min(ends[1]).floor(), ends[0].max(ends[1]).ceil());
    if lowest < f64::from(i32::MIN) || highest > f64::from(i32::MAX) {
        return Err("its position limits are beyond 32 bits");
    }
    Ok((lowest as i32, highest as i32))
}

/// Window in counts and time in milliseconds after which the drive itself stops; supervision does
/// so before.
fn following_error(axis: &Axis) -> Result<(u32, u32), &'static str> {
    let limit = axis.following_error.ok_or("the axis has no following_error")?;
    let window = limit.distance.0 * axis.scale.counts_per_radian().abs() * LATER;
    // All bits set would switch the supervision of the drive off.
    let window = (window.ceil() as u32).clamp(1, u32::MAX - 1);
    let time = (limit.timeout.0 * 1000.0 * LATER).ceil() as u16;
    Ok((window, time.into()))
}

fn torque(axis: &Axis) -> Result<BarrierTask, &'static str> {
    let units = axis.scale.torque_units(axis.limits.torque).map_err(|_| "limits.torque is no number")?;
    if units.saturated {
        return Err("limits.torque is beyond what the object holds");
    }
    Ok(BarrierTask::Write(u32::from(units.value.unsigned_abs().max(1))))
}

/// True in a mode of torques, unless the axis writes its profile anyway.
fn halts_by_profile(axis: &Axis) -> bool {
    let modes = || std::iter::once(axis.mode).chain(axis.modes.iter().copied());
    let profile = |mode| profile_objects(mode).iter().any(|&(index, _)| index == PROFILE_DECELERATION);
    modes().any(|mode| mode.cyclic() == CyclicMode::Torque) && !modes().any(profile)
}

/// True if the drive takes speeds of this axis in counts a second already: where it names no unit,
/// that counts.
fn counts_velocities(axis: &Axis) -> bool {
    let modes = std::iter::once(&axis.mode).chain(&axis.modes);
    let mut modes = modes.filter(|mode| {
        matches!(mode, AxisMode::CyclicVelocity | AxisMode::ProfileVelocity | AxisMode::ProfilePosition)
    });
    let homes = axis.homing_settings.and_then(|it| it.method).is_some_and(|it| !matches!(it, 35 | 37));
    modes.next().is_some() || homes
}

/// The value of a barrier in counts, if it is written in counts.
fn in_counts(axis: &Axis, barrier: Barrier) -> Option<i64> {
    match barrier.task {
        BarrierTask::Read => None,
        BarrierTask::Write(value) => Some(barrier.number(value)),
        BarrierTask::WriteInUnit(value) if counts_velocities(axis) => value.in_unit(0).map(i64::from),
        BarrierTask::WriteInUnit(_) => None,
    }
}

/// True if a start-up SDO writes this object.
fn writes(sdo: &StartupSdo, index: u16, sub_index: u8) -> bool {
    sdo.index == index && (sdo.sub_index == sub_index || sdo.complete_access && sdo.sub_index < sub_index)
}

/// Number that a start-up SDO writes. If it writes a whole object, the part of this sub-index.
fn value(barrier: &Barrier, sdo: &StartupSdo) -> i64 {
    let length = usize::from(barrier.length);
    let parts = usize::from(barrier.sub_index.saturating_sub(sdo.sub_index));
    // Sub-index 0 takes two bytes of a whole object.
    let begin = match (sdo.complete_access, sdo.sub_index) {
        (true, 0) => 2 + parts.saturating_sub(1) * length,
        (true, _) => parts * length,
        (false, _) => 0,
    };
    let bytes = sdo.data.iter().skip(begin).take(length);
    let bits = bytes.rev().fold(0, |bits: u32, &byte| bits << 8 | u32::from(byte));
    barrier.number(bits)
}

/// True if the drive bounds the axis less with `value` than with `limits`.
fn is_weaker(index: u16, sub_index: u8, value: i64, limits: i64) -> bool {
    match (of_first_axis(index), sub_index) {
        (SOFTWARE_POSITION_LIMIT, 1) | (QUICK_STOP_DECELERATION | PROFILE_DECELERATION, _) => {
            value < limits
        }
        _ => value > limits,
    }
}

/// Share of the velocity limit that is written to the drive: an axis that catches up after an
/// outage is that fast for a moment.
const FASTER: f64 = 1.2;

/// Share of window and time of the following error: supervision is to act before the drive.
const LATER: f64 = 1.5;

/// Different values of 0x6064: an encoder with at least as many counts shifts by no whole range.
const COUNTS_OF_32_BITS: f64 = 4_294_967_296.0;

/// Objects in which a drive names the units of speeds and accelerations.
const SI_UNIT_VELOCITY: u16 = SI_UNIT_POSITION + 1;
const SI_UNIT_ACCELERATION: u16 = SI_UNIT_POSITION + 2;
