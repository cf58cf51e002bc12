//! Motion of the simulated shafts, and set-points as they arrived at the drives.
//!
//! The controller of a cell.

use std::f64::consts::PI;
use std::sync::mpsc::Sender;
use std::time::Duration;

use ethercat::cia402::{AxisMode, ModeOfOperation, Request, State};
use ethercat::time::Instant;
use motion::supervision::StopReason;
use motion::{AxisPhase, NewtonMetres, RadiansPerSecond};
use onbeat_control::controller::{Controller, CycleInfo, Io};
use onbeat_control::stop::StopHandle;
use simulator::application::brake::Sticking;
use simulator::application::servo::Taken;

use super::cell::{Cell, Phase};
use super::exchange::Newest;
use super::robot::{COUNTS_PER_RADIAN, Report, SECOND, axes};
use super::wire::Progress;
use crate::support::PERIOD;

/// Set-points as they arrived at a drive: within the limits of position, and from one to the next
/// at most 1.05 times the limit of velocity over the cycles between. With a bit altered of what the
/// drive shows, they begin elsewhere.
pub(crate) fn check_arrived(cell: Cell, taken: &[Vec<Taken>], misled: impl Fn(Instant) -> bool) {
    let count = 1.0 / COUNTS_PER_RADIAN;
    for (drive, axis) in axes(cell).iter().enumerate() {
        let limits = axis.supervision.unwrap().limits;
        let follows = |it: &&Taken| it.follows() && it.controlword.0 & 0x0F == 0x0F;
        // Of a drive that was disabled in between, set-points begin at its shaft.
        let mut changed: Option<Taken> = None;
        let mut enabled = None;
        for it in &taken[drive] {
            if !follows(&it) || it.mode == ModeOfOperation::Homing || misled(it.now) {
                (changed, enabled) = (None, None);
                continue;
            }
            let speed = f64::from(it.target_velocity).abs() / COUNTS_PER_RADIAN;
            assert!(speed <= limits.velocity.0 * 1.05, "drive {drive}: {speed} rad/s {it:?} {cell:?}");
            // In interpolated position the drive takes its set-points from another object.
            if axis.mode != AxisMode::CyclicPosition {
                continue;
            }
            let since = *enabled.get_or_insert(it.now);
            let target = f64::from(it.target_position) / COUNTS_PER_RADIAN;
            if let Some((lowest, highest)) = limits.position.filter(|_| it.now.since(since) > PERIOD * 6) {
                let within = target >= lowest.0 - count && target <= highest.0 + count;
                // An axis that is enabled beyond its limits stays there.
                let stays = it.target_position == it.position;
                assert!(within || stays, "drive {drive}: {target} rad {it:?} {cell:?}");
            }
            let before = *changed.get_or_insert(*it);
            if before.target_position != it.target_position {
                let step = f64::from(it.target_position.wrapping_sub(before.target_position)).abs();
                let step = step / COUNTS_PER_RADIAN;
                let cycles = it.now.since(before.now).as_secs_f64() / PERIOD.as_secs_f64();
                let most = 1.05 * limits.velocity.0 * PERIOD.as_secs_f64() * cycles.round().max(1.0);
                assert!(
                    step <= most + count,
                    "drive {drive}: {step} rad, at most {most}: {before:?} {it:?} {cell:?}"
                );
                changed = Some(*it);
            }
        }
    }
}

/// Deceleration of a shaft without torque, in rad/s2: that of friction, with a margin.
const COASTS: f64 = 25.0;

/// Time in which a drive notices that it gets no process data, in s, and begins to brake.
const NOTICES: f64 = 0.12;

/// The true position: never farther beyond the limits than the axis needs to brake. An axis that is
/// unreferenced does not move at all.
pub(crate) fn check_true_position(cell: Cell, taken: &[Vec<Taken>], reports: &[Report]) {
    for (drive, axis) in axes(cell).iter().enumerate() {
        let Some((lowest, highest)) = axis.supervision.unwrap().limits.position else { continue };
        let by_hand = drive == SECOND && cell.fault.turns_the_shaft();
        if by_hand && !cell.is_in_op() {
            // Its place at the first start is all that anybody knows.
            continue;
        }
        // Before it is enabled for the first time, the shaft is where the drive counts it.
        let Some(first) = taken[drive].iter().position(|it| it.state == State::OperationEnabled) else {
            continue;
        };
        let first = &taken[drive][first];
        let offset = first.angle - f64::from(first.position) / COUNTS_PER_RADIAN;
        // An axis that is enabled beyond its limits stays there, or moves inwards.
        let (mut speed, mut most) = (0.0, f64::INFINITY);
        for it in taken[drive].iter().filter(|it| it.now >= first.now) {
            let place = it.angle - offset;
            let beyond = (lowest.0 - place).max(place - highest.0);
            if beyond <= 0.0 {
                (speed, most) = (it.velocity.abs() / COUNTS_PER_RADIAN, 0.0);
                continue;
            }
            let brakes = speed * NOTICES + speed * speed / (2.0 * COASTS);
            let turned = by_hand && beyond > 1.0;
            most = most.min(beyond);
            assert!(
                beyond <= most.max(brakes) + 1e-3 || turned,
                "drive {drive}: {beyond} rad beyond, {it:?} {cell:?}"
            );
        }
    }
    check_unreferenced(cell, taken, reports);
}

/// An axis is unreferenced once its drive counts from elsewhere; then it does not move, though its
/// controller resets it and asks for motion all the time.
fn check_unreferenced(cell: Cell, taken: &[Vec<Taken>], reports: &[Report]) {
    let unreferenced = |reason| {
        matches!(
            reason,
            StopReason::UnreferencedChange
                | StopReason::UnreferencedRestart
                | StopReason::UnreferencedCount
                | StopReason::UnreferencedSensor
        )
    };
    for (drive, taken) in taken.iter().enumerate() {
        let stopped = |it: &&Report| it.axes[drive].stop.is_some_and(unreferenced);
        let since = reports.iter().find(stopped).map(|it| it.now);
        let must = drive == SECOND && cell.fault.loses_the_reference() && cell.is_in_op();
        assert!(since.is_some() || !must, "drive {drive} is never unreferenced {cell:?}");
        let Some(since) = since else { continue };
        let last = reports.last().unwrap();
        assert!(stopped(&last), "drive {drive}: {:?} {cell:?}", last.axes[drive]);
        // What a quick stop, or the motor that coasts, takes.
        let rests = since + PERIOD * 500;
        let angles = taken.iter().filter(|it| it.now > rests).map(|it| it.angle);
        let angles: Vec<_> = angles.collect();
        let most = angles.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let moved = most - angles.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(angles.is_empty() || moved < 2e-3, "drive {drive} moved by {moved} rad {cell:?}");
        let enabled = taken.iter().any(|it| it.now > rests && it.state == State::OperationEnabled);
        let phase = cell.phase != Phase::Homing || drive != 0;
        assert!(!(enabled && moved > 1e-3 && phase), "drive {drive} is enabled {cell:?}");
    }
}

/// Cycles in which an axis stops after its brake is found to stick.
const RESTS: u32 = 150;

/// A brake that sticks is found. Closed: its axis does not move after that. Open: its drive holds
/// the load until the second request to stop. A drive that powers its brake is not enabled after
/// that, and a drive whose brake is open on the way up is never enabled.
pub(crate) fn check_sticking_brake(cell: Cell, taken: &[Vec<Taken>], reports: &[Report]) {
    let Some(sticking) = cell.fault.sticks() else { return };
    let is_open = sticking == Sticking::Open;
    let reason = if is_open { StopReason::BrakeNotClosed } else { StopReason::BrakeNotOpen };
    let found = reports.iter().find(|it| it.axes[SECOND].stop == Some(reason)).map(|it| it.now);
    let found = found.unwrap_or_else(|| panic!("the brake is not found {cell:?}"));
    let after: Vec<_> = taken[SECOND].iter().filter(|it| it.now > found + PERIOD * RESTS).collect();
    if is_open && (cell.fault.drive_powers_brake() || cell.is_on_the_way_up()) {
        let from = if cell.is_on_the_way_up() { Instant::from_nanos(0) } else { found + PERIOD * RESTS };
        let is_enabled = |it: &&Taken| it.now > from && it.state == State::OperationEnabled;
        let enabled = taken[SECOND].iter().find(is_enabled);
        assert!(enabled.is_none(), "it is enabled with an open brake: {enabled:?} {cell:?}");
    } else if is_open {
        let stopping = reports.iter().find(|it| it.stopping).map(|it| it.now).unwrap();
        let second = stopping + Duration::from_secs_f64(SECOND_STOP - 0.1);
        let held = after.iter().filter(|it| it.now < second);
        assert!(held.clone().count() > 1_000, "the run does not wait {cell:?}");
        let lost = held.clone().find(|it| it.state != State::OperationEnabled);
        assert!(lost.is_none(), "the load is not held: {lost:?} {cell:?}");
    }
    let angles = || after.iter().map(|it| it.angle);
    let moved = angles().fold(f64::NEG_INFINITY, f64::max) - angles().fold(f64::INFINITY, f64::min);
    assert!(after.is_empty() || moved < 2e-3, "it moved by {moved} rad {cell:?}");
}

/// Sways all axes about their first positions, within all limits. In the phase of homing the first
/// axis homes at standstill instead. An axis in profile position moves between two destinations, an
/// axis in profile torque is turned further. After a change of its count an axis is reset
/// repeatedly.
pub(crate) struct Sway {
    cell: Cell,
    modes: [AxisMode; 3],
    progress: Progress,
    newest: Newest,
    see: Sender<Report>,
    cycles: u64,
    times: [Option<Time>; 3],
    /// Time since the cycle was asked to stop, in s.
    stopping: f64,
    stop: StopHandle,
}

/// Place where the sway of an axis began (rad), and time since (s).
#[derive(Clone, Copy)]
struct Time {
    origin: f64,
    elapsed: f64,
}

/// Time of the first swing, and that in which a sway slows down to rest, in s.
const EASE: f64 = 1.0;

const SLOW: f64 = 0.5;

/// Time after a first stop, in s: an axis that still holds a load waits for a second one.
pub(crate) const SECOND_STOP: f64 = 8.0;

/// Cycles from the first motion to the first reset.
const RESETS: u64 = 1_500;

impl Sway {
    pub(crate) fn new(
        cell: Cell,
        (progress, stop): (Progress, StopHandle),
        newest: Newest,
        see: Sender<Report>,
    ) -> Self {
        let (modes, times) = (cell.phase.modes(), [None; 3]);
        Self { cell, modes, progress, newest, see, cycles: 0, times, stopping: 0.0, stop }
    }

    /// Share of its speed that a sway has while the cycle stops.
    fn pace(&self) -> f64 {
        1.0 - eased(self.stopping / SLOW)
    }
}

/// From 0 to 1, with a slope that begins and ends at 0.
fn eased(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    share * share * (3.0 - 2.0 * share)
}

impl Controller for Sway {
    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        let enabled = reports.iter().all(|report| report.state == Some(State::OperationEnabled));
        self.cycles += u64::from(enabled || self.cycles > 0);
        if self.cycles > 500 {
            self.progress.note(Progress::MOVING);
        }
        let step = info.period.as_secs_f64() * info.periods as f64;
        if info.stopping {
            self.progress.note(Progress::STOPPING);
            self.stopping += step;
            if self.stopping > SECOND_STOP {
                self.stop.hurry();
            }
        }
        let pace = self.pace();
        let homes = self.cell.phase == Phase::Homing;
        for (number, (report, command)) in reports.iter().zip(commands).enumerate() {
            command.request = Request::Enable;
            let resets = number == SECOND && self.cell.fault.loses_the_reference();
            if resets && self.cycles > RESETS && self.cycles % 200 < 10 && !info.stopping {
                command.request = Request::FaultReset;
            }
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                self.times[number] = Some(Time { origin: position.0, elapsed: 0.0 });
            }
            let Some(Time { origin, elapsed }) = &mut self.times[number] else { continue };
            *elapsed += step * pace;
            let ease = eased(*elapsed / EASE);
            let (sin, cos) = (PI * *elapsed).sin_cos();
            let still = homes && number == 0;
            match self.modes[number] {
                AxisMode::ProfilePosition if info.stopping => command.request = Request::Halt,
                AxisMode::ProfilePosition => {
                    let begins = *elapsed < 0.01;
                    command.setpoint.position.0 = *origin + if begins { 0.0 } else { sin.signum() };
                }
                AxisMode::ProfileTorque if info.stopping => command.setpoint.torque = NewtonMetres::ZERO,
                AxisMode::ProfileTorque => command.setpoint.torque.0 = ease * 0.025,
                AxisMode::ProfileVelocity if info.stopping => {
                    command.setpoint.velocity = RadiansPerSecond::ZERO;
                }
                AxisMode::CyclicVelocity | AxisMode::ProfileVelocity => {
                    command.setpoint.velocity.0 = ease * 2.0 * cos * pace;
                }
                _ if still => command.setpoint.position.0 = *origin,
                _ => command.setpoint.position.0 = *origin + ease * sin,
            }
            command.home = still && self.cycles == 600;
        }
        if reports[0].homing {
            self.progress.note(Progress::HOMING);
        }
        let (now, cycle, stopping) = (info.release, info.cycle, info.stopping);
        let axes = [reports[0], reports[1], reports[2]];
        let _ = self.see.send(Report { now, cycle, stopping, axes, exchange: self.newest.get() });
    }
}
