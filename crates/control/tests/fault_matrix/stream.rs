//! Set-points as they leave on the wire, by the number of their cycle, and the limits that none of
//! them exceeds.

use std::sync::{Arc, Mutex};

use ethercat::cia402::{AxisMode, Controlword, ModeOfOperation, State};
use ethercat::time::Instant;
use ethercat::wire::Command;
use ethercat::wire::frame;
use motion::Radians;
use motion::supervision::Limits;
use onbeat_control::axis::AxisConfiguration;
use simulator::Segment;

use super::cell::Cell;
use super::robot::{COUNTS_PER_RADIAN, Report, axes};
use crate::support::PERIOD;

/// Outputs of one drive, as `robot::mapping` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outputs {
    pub(crate) controlword: Controlword,
    target_position: i32,
    target_velocity: i32,
    target_torque: i16,
    mode: i8,
    /// 0x60C1:1, of interpolated position.
    interpolated: i32,
}

impl Outputs {
    const LENGTH: usize = 17;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let long = |at: usize| Some(i32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        Some(Self {
            controlword: Controlword(short(0)?),
            target_position: long(2)?,
            target_velocity: long(6)?,
            target_torque: short(10)? as i16,
            mode: *bytes.get(12)? as i8,
            interpolated: long(13)?,
        })
    }
}

/// Outputs in one frame, lost on its way or not, and the states of the drives then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) now: Instant,
    pub(crate) outputs: [Option<Outputs>; 3],
    states: [Option<State>; 3],
}

/// All frames with process data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    sent: Arc<Mutex<Vec<Sent>>>,
    /// Logical addresses of the outputs, by the FMMUs of the SubDevices.
    addresses: [Option<u32>; 3],
}

impl Stream {
    /// Notes a frame of the cycle to `segment` with drives in these states.
    pub(crate) fn leaves(
        &mut self,
        frame: &[u8],
        now: Instant,
        segment: &Segment,
        states: [Option<State>; 3],
    ) {
        let writes = |command| matches!(command, Command::Lrw | Command::Lwr);
        let written: Vec<_> = frame::places(frame).filter(|it| writes(it.header.command)).collect();
        if written.is_empty() {
            return;
        }
        for (place, address) in self.addresses.iter_mut().enumerate() {
            *address = logical_outputs(segment, place).or(*address);
        }
        let outputs = self.addresses.map(|address| {
            let address = address?;
            written.iter().find_map(|it| {
                let from = usize::try_from(address.checked_sub(it.header.address)?).ok()?;
                frame.get(it.data())?.get(from..from + Outputs::LENGTH).and_then(Outputs::parse)
            })
        });
        self.sent.lock().unwrap().push(Sent { now, outputs, states });
    }

    pub(crate) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }
}

/// Logical address at which a SubDevice takes its outputs.
fn logical_outputs(segment: &Segment, place: usize) -> Option<u32> {
    let device = &segment.sub_devices()[place];
    (0..4_u16).find_map(|number| {
        let mut fmmu = [0; 16];
        device.peek(0x0600 + 16 * number, &mut fmmu);
        let length = usize::from(u16::from_le_bytes([fmmu[4], fmmu[5]]));
        let is_outputs = fmmu[11] == 2 && fmmu[12] & 1 == 1 && length >= Outputs::LENGTH;
        is_outputs.then(|| u32::from_le_bytes([fmmu[0], fmmu[1], fmmu[2], fmmu[3]]))
    })
}

/// Set-point of one cycle of an enabled drive.
#[derive(Clone, Copy, Debug)]
struct SetPoint {
    cycle: u64,
    /// Position (rad) or velocity (rad/s).
    value: f64,
    /// The axis is its controller's, and was so in the cycles that are compared.
    free: bool,
    /// The first one after an outage, or after releases that were skipped.
    returns: bool,
}

/// Cycles in which the set-point of a drive that has just been enabled is the position that it
/// shows.
const ENABLED: usize = 5;

/// Checks the stream of a run: no set-point beyond position, velocity, written acceleration and
/// jerk. From the third cycle to the end of an outage, and over skipped releases, the difference
/// over all cycles between counts.
pub(crate) fn check(cell: Cell, sent: &[Sent], reports: &[Report], misled: impl Fn(Instant) -> bool) {
    for (drive, axis) in axes(cell).iter().enumerate() {
        let limits = axis.supervision.unwrap().limits;
        let mut chain: Vec<SetPoint> = Vec::new();
        for it in sent {
            let Some(outputs) = it.outputs[drive] else { continue };
            check_numbers(cell, drive, axis.mode, &outputs, &limits);
            let follows = outputs.controlword.enables_operation()
                && outputs.controlword.0 & 0x0F == 0x0F
                && !outputs.controlword.halt()
                && outputs.mode != ModeOfOperation::Homing.number()
                && !misled(it.now)
                && it.states[drive] == Some(State::OperationEnabled);
            let value = value(axis, &outputs).filter(|_| follows);
            match value.and_then(|value| set_point(it.now, value, drive, reports)) {
                None => check_chain(cell, drive, axis, &std::mem::take(&mut chain)),
                Some(next) => {
                    // Frames of the same cycle carry the same set-point.
                    if chain.last().is_none_or(|last| last.cycle != next.cycle) {
                        chain.push(next);
                    }
                }
            }
        }
        check_chain(cell, drive, axis, &chain);
    }
}

/// Position in csp and ip, velocity in csv; `None` in profile and torque modes.
fn value(axis: &AxisConfiguration, outputs: &Outputs) -> Option<f64> {
    let counts = match axis.mode {
        AxisMode::CyclicPosition => outputs.target_position,
        AxisMode::InterpolatedPosition => outputs.interpolated,
        AxisMode::CyclicVelocity => outputs.target_velocity,
        _ => return None,
    };
    Some(f64::from(counts) / COUNTS_PER_RADIAN)
}

/// Numbers in profile modes, and torques.
fn check_numbers(cell: Cell, drive: usize, mode: AxisMode, outputs: &Outputs, limits: &Limits) {
    if !outputs.controlword.enables_operation() {
        return;
    }
    let radians = |counts: i32| f64::from(counts) / COUNTS_PER_RADIAN;
    let within = match mode {
        AxisMode::ProfileVelocity => radians(outputs.target_velocity).abs() <= limits.velocity.0 * 1.001,
        AxisMode::ProfileTorque | AxisMode::CyclicTorque => {
            f64::from(outputs.target_torque).abs() <= limits.torque.0 / 2.4 * 1000.0 + 1.0
        }
        _ => true,
    };
    assert!(within, "drive {drive}: {outputs:?} {cell:?}");
}

/// The set-point of a frame, with the reports of its cycle and of the cycles around it.
fn set_point(now: Instant, value: f64, drive: usize, reports: &[Report]) -> Option<SetPoint> {
    let next = reports.partition_point(|it| it.now <= now);
    let index = next.checked_sub(1)?;
    let cycle = reports[index].cycle;
    let around = &reports[index.saturating_sub(4)..reports.len().min(index + 3)];
    let free = around.iter().all(|it| it.axes[drive].stop.is_none() && it.axes[drive].missed < 3);
    let here = &reports[index.saturating_sub(1)..reports.len().min(index + 2)];
    let out = here.iter().any(|it| it.axes[drive].missed >= 3);
    let skipped = index > 0 && cycle - reports[index - 1].cycle > 1;
    Some(SetPoint { cycle, value, free, returns: out || skipped })
}

/// Checks set-points of consecutive frames to an enabled drive.
fn check_chain(cell: Cell, drive: usize, axis: &AxisConfiguration, chain: &[SetPoint]) {
    let limits = axis.supervision.unwrap().limits;
    let is_velocity = axis.mode == AxisMode::CyclicVelocity;
    let period = PERIOD.as_secs_f64();
    let count = 1.0 / COUNTS_PER_RADIAN;
    let Some(chain) = chain.get(ENABLED..) else { return };
    let what = |index: usize| {
        let from = index.saturating_sub(5);
        format!("drive {drive}, {:?} {cell:?}", &chain[from..chain.len().min(index + 2)])
    };
    let beyond = |value: f64| {
        let distance = |(lowest, highest): (Radians, Radians)| (lowest.0 - value).max(value - highest.0);
        limits.position.filter(|_| !is_velocity).map_or(0.0, |limits| distance(limits).max(0.0))
    };
    // An axis that is enabled beyond its limits stays there, or moves inwards.
    let mut most = chain.first().map_or(0.0, |it| beyond(it.value));
    for (index, it) in chain.iter().enumerate() {
        assert!(beyond(it.value) <= most + count, "position: {}", what(index));
        most = beyond(it.value);
        let speed = if is_velocity { it.value } else { 0.0 };
        assert!(speed.abs() <= limits.velocity.0 * 1.0001 + count / period, "velocity: {}", what(index));
    }
    // Differences over so many cycles: the longer, the less counts matter.
    for stride in [1, 8] {
        let (mut returned, mut bound) = (None, None);
        for (index, it) in chain.iter().enumerate() {
            returned = if it.returns { Some(index) } else { returned };
            bound = if it.free { bound } else { Some(index) };
            let Some(first) = index.checked_sub(3 * stride) else { continue };
            let [d, c, b, a] = [first, first + stride, first + 2 * stride, index].map(|it| chain[it]);
            let time = period * stride as f64;
            let (velocity, acceleration, jerk) = match is_velocity {
                false => (
                    (a.value - b.value) / time,
                    (a.value - 2.0 * b.value + c.value) / time.powi(2),
                    (a.value - 3.0 * b.value + 3.0 * c.value - d.value) / time.powi(3),
                ),
                true => (
                    a.value,
                    (a.value - b.value) / time,
                    (a.value - 2.0 * b.value + c.value) / time.powi(2),
                ),
            };
            // Rounding of each of the set-points to a count.
            let unit = if is_velocity { count } else { count / time };
            let between = (a.cycle - b.cycle) as f64 / stride as f64;
            let most = limits.velocity.0 * 1.05 * between + unit;
            assert!(velocity.abs() <= most, "velocity {velocity} over {stride}: {}", what(index));
            if returned >= Some(first) || between > 1.0 {
                continue;
            }
            let most = limits.acceleration.0.max(limits.deceleration.0) * 1.0101 + 2.0 * unit / time;
            assert!(
                acceleration.abs() <= most,
                "acceleration {acceleration} over {stride}: {}",
                what(index)
            );
            let most = limits.jerk.0 * 1.0101 + 4.0 * unit / time.powi(2);
            let is_free = bound < Some(first);
            assert!(jerk.abs() <= most || !is_free, "jerk {jerk} over {stride}: {}", what(index));
        }
    }
}
