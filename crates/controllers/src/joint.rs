//! Controllers of single axes by position, velocity or torque.

use control::controller::{
    AxisTarget, Clamped, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness,
};
use control::signal::Io;
use ethercat::cia402::Request;
use ipc::state::Limit;
use motion::online::{OnlineError, OnlineMotion, Synchronisation, Target};
use motion::{AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond, TrajectoryPoint};

use crate::axis::{AxisSettings, clamped, elapsed};

/// Moves axes in mode CSP to the commanded positions, by jerk-limited motions that a new position changes
/// at any time. An axis without a command goes on to its last commanded position.
#[derive(Clone, Debug)]
pub struct JointPosition {
    axes: Vec<AxisSettings>,
    motion: OnlineMotion,
    targets: Vec<Option<AxisTarget>>,
    /// Target of each axis.
    aims: Vec<Option<Radians>>,
    clamped: Option<Clamped>,
    stopping: bool,
}

impl JointPosition {
    /// A controller of these axes.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn new(axes: &[AxisSettings]) -> Result<Self, OnlineError> {
        Ok(Self {
            motion: online(axes)?,
            targets: vec![None; axes.len()],
            aims: vec![None; axes.len()],
            axes: axes.to_vec(),
            clamped: None,
            stopping: false,
        })
    }

    /// Sets the target of an axis; the motion changes smoothly.
    fn aim(&mut self, index: usize, stopping: bool) {
        if stopping {
            if !self.stopping {
                self.aims[index] = None;
                let _ = self.motion.aim_axis(index, Target::Velocity(RadiansPerSecond::ZERO));
            }
            return;
        }
        let Some(AxisTarget::Position(asked)) = self.targets[index] else { return };
        let settings = &self.axes[index];
        let position = settings.within(asked, self.motion.points()[index].position);
        self.clamped =
            self.clamped.or_else(|| clamped(Limit::Position, Some(settings.axis), asked.0, position.0));
        // A target refused for lying two hours away leaves the axis on its old path.
        if self.aims[index] != Some(position)
            && self.motion.aim_axis(index, Target::rest_at(position)).is_ok()
        {
            self.aims[index] = Some(position);
        }
    }
}

impl Controller for JointPosition {
    fn command(&mut self, command: &ExternalCommand) {
        fresh_targets(&self.axes, command, &mut self.targets);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.motion.advance(elapsed(&info));
        self.clamped = None;
        for index in 0..self.axes.len() {
            let axis = self.axes[index].axis;
            let (Some(report), Some(command)) = (reports.get(axis), commands.get_mut(axis)) else {
                continue;
            };
            command.request = Request::Enable;
            match report.feedback.phase {
                AxisPhase::NotEnabled => self.aims[index] = None,
                AxisPhase::HoldingAt(position) => {
                    self.aims[index] = None;
                    begin(&mut self.motion, index, position);
                    command.setpoint = self.motion.points()[index].into();
                }
                AxisPhase::Following => {
                    command.setpoint = self.motion.points()[index].into();
                    self.aim(index, info.stopping);
                }
            }
        }
        self.stopping = info.stopping;
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, clamped: self.clamped, ..ControllerOutput::default() }
    }
}

/// Turns axes in mode CSV at the commanded velocities, which they reach with bounded acceleration and jerk.
/// An axis without a command comes to rest.
#[derive(Clone, Debug)]
pub struct JointVelocity {
    axes: Vec<AxisSettings>,
    motion: OnlineMotion,
    targets: Vec<Option<AxisTarget>>,
    aims: Vec<RadiansPerSecond>,
    clamped: Option<Clamped>,
}

impl JointVelocity {
    /// A controller of these axes.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn new(axes: &[AxisSettings]) -> Result<Self, OnlineError> {
        Ok(Self {
            motion: online(axes)?,
            targets: vec![None; axes.len()],
            aims: vec![RadiansPerSecond::ZERO; axes.len()],
            axes: axes.to_vec(),
            clamped: None,
        })
    }
}

impl Controller for JointVelocity {
    fn command(&mut self, command: &ExternalCommand) {
        fresh_targets(&self.axes, command, &mut self.targets);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.motion.advance(elapsed(&info));
        self.clamped = None;
        for (index, settings) in self.axes.iter().enumerate() {
            let axis = settings.axis;
            let (Some(report), Some(command)) = (reports.get(axis), commands.get_mut(axis)) else {
                continue;
            };
            command.request = Request::Enable;
            // Only the velocity matters: the axis may be at another position than the motion.
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                begin(&mut self.motion, index, position);
                self.aims[index] = RadiansPerSecond::ZERO;
            }
            if report.feedback.phase == AxisPhase::NotEnabled {
                continue;
            }
            let limit = settings.velocity_limit.0;
            let wanted = match self.targets[index] {
                Some(AxisTarget::Velocity(asked)) if !info.stopping => {
                    let possible = asked.0.clamp(-limit, limit);
                    self.clamped =
                        self.clamped.or_else(|| clamped(Limit::Velocity, Some(axis), asked.0, possible));
                    RadiansPerSecond(possible)
                }
                _ => RadiansPerSecond::ZERO,
            };
            if wanted != self.aims[index] && self.motion.aim_axis(index, Target::Velocity(wanted)).is_ok() {
                self.aims[index] = wanted;
            }
            command.setpoint = self.motion.points()[index].into();
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, clamped: self.clamped, ..ControllerOutput::default() }
    }
}

/// Gives axes in mode CST the commanded torques, within their limits. An axis without a command gets none.
#[derive(Clone, Debug)]
pub struct JointEffort {
    axes: Vec<(AxisSettings, NewtonMetres)>,
    targets: Vec<Option<AxisTarget>>,
    clamped: Option<Clamped>,
}

impl JointEffort {
    /// A controller of these axes with their highest torques.
    #[must_use]
    pub fn new(axes: &[(AxisSettings, NewtonMetres)]) -> Self {
        Self { targets: vec![None; axes.len()], axes: axes.to_vec(), clamped: None }
    }
}

impl Controller for JointEffort {
    fn command(&mut self, command: &ExternalCommand) {
        let fresh = command.freshness == Freshness::Fresh;
        for ((settings, _), target) in self.axes.iter().zip(&mut self.targets) {
            *target = command.axes.get(settings.axis).copied().flatten().filter(|_| fresh);
        }
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.clamped = None;
        for ((settings, limit), target) in self.axes.iter().zip(&self.targets) {
            let axis = settings.axis;
            let (Some(report), Some(command)) = (reports.get(axis), commands.get_mut(axis)) else {
                continue;
            };
            // Without torque a load would fall: its drive brakes and holds the axis.
            command.request = if info.stopping { Request::Halt } else { Request::Enable };
            let torque = match (target, report.feedback.phase) {
                (Some(AxisTarget::Effort(asked)), AxisPhase::Following | AxisPhase::HoldingAt(_))
                    if !info.stopping =>
                {
                    let possible = asked.0.clamp(-limit.0, limit.0);
                    self.clamped =
                        self.clamped.or_else(|| clamped(Limit::Effort, Some(axis), asked.0, possible));
                    NewtonMetres(possible)
                }
                _ => NewtonMetres::ZERO,
            };
            command.setpoint =
                AxisSetpoint { position: report.feedback.position, torque, ..AxisSetpoint::default() };
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, clamped: self.clamped, ..ControllerOutput::default() }
    }
}

fn online(axes: &[AxisSettings]) -> Result<OnlineMotion, OnlineError> {
    let limits: Vec<_> = axes.iter().map(AxisSettings::online).collect();
    OnlineMotion::new(&limits, Synchronisation::Independent)
}

fn fresh_targets(axes: &[AxisSettings], command: &ExternalCommand, targets: &mut [Option<AxisTarget>]) {
    let fresh = command.freshness == Freshness::Fresh;
    for (settings, target) in axes.iter().zip(targets) {
        *target = command.axes.get(settings.axis).copied().flatten().filter(|_| fresh);
    }
}

/// Starts the motion of an axis at rest at `position`.
pub(crate) fn begin(motion: &mut OnlineMotion, index: usize, position: Radians) {
    // A position that is not a finite number comes from no drive: the axis stays in place.
    let _ = motion.begin(index, TrajectoryPoint { position, ..TrajectoryPoint::default() });
}
