//! The controller of a cell.

use std::f64::consts::PI;
use std::sync::mpsc::Sender;

use ethercat::cia402::{AxisMode, Request, State};
use motion::{AxisPhase, NewtonMetres, RadiansPerSecond};
use onbeat_control::controller::{Controller, CycleInfo};
use onbeat_control::signal::Io;
use onbeat_control::stop::StopHandle;

use super::cell::{Cell, Phase};
use super::exchange::Newest;
use super::robot::{Report, SECOND};
use super::wire::Progress;

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
