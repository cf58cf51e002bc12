//! Controllers of single axes by position, velocity or torque.

use control::controller::{
    AxisCommand, AxisTarget, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness, Io,
};
use ethercat::cia402::{CyclicMode, Request};
use ipc::state::{Clamped, Limit};
use motion::online::{OnlineError, OnlineMotion, Synchronisation, Target};
use motion::{AxisPhase, AxisSetpoint, NewtonMetres, Radians, RadiansPerSecond, TrajectoryPoint};

use crate::axis::{AxisSettings, clamped, elapsed};

/// Moves axes in modes CSP and IP to the commanded positions, by jerk-limited motions that a new
/// position changes at any time. In mode PP the drive makes the motion. An axis without a command
/// continues to its last commanded position.
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

    /// Sends an axis in a profile mode its target, or halts it to stop it.
    fn head_for(&mut self, index: usize, here: Radians, command: &mut AxisCommand, stopping: bool) {
        let settings = &self.axes[index];
        match self.targets[index] {
            _ if stopping => command.request = Request::Halt,
            Some(AxisTarget::Position(asked)) => {
                let position = settings.within(asked, here);
                self.clamped = self
                    .clamped
                    .or_else(|| clamped(Limit::Position, Some(settings.axis), asked.0, position.0));
                command.setpoint = AxisSetpoint { position, ..AxisSetpoint::default() };
            }
            _ => {}
        }
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
                    if info.stopping && self.axes[index].profile {
                        command.request = Request::Halt;
                    }
                }
                AxisPhase::Following if self.axes[index].profile => {
                    self.head_for(index, report.feedback.position, command, info.stopping);
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

/// Turns axes in modes CSV, PV, CSP or IP at the commanded velocities, which they reach with
/// bounded acceleration and jerk. An axis without a command stops. An axis in CSP or IP is sent the
/// positions on its way, and stops at its position limits.
#[derive(Clone, Debug)]
pub struct JointVelocity {
    axes: Vec<AxisSettings>,
    modes: Vec<CyclicMode>,
    motion: OnlineMotion,
    targets: Vec<Option<AxisTarget>>,
    aims: Vec<Aim>,
    clamped: Option<Clamped>,
}

/// Velocity that an axis is on its way to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Aim {
    velocity: RadiansPerSecond,
    /// Position limit it leads to, if the axis has to stop there.
    wall: Option<Radians>,
    /// False while that limit is too far away to be planned for.
    planned: bool,
}

impl JointVelocity {
    /// A controller of these axes with their modes.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn new(axes: &[(AxisSettings, CyclicMode)]) -> Result<Self, OnlineError> {
        let (axes, modes): (Vec<_>, Vec<_>) = axes.iter().copied().unzip();
        Ok(Self {
            motion: online(&axes)?,
            targets: vec![None; axes.len()],
            aims: vec![Aim::default(); axes.len()],
            axes,
            modes,
            clamped: None,
        })
    }

    /// Commanded velocity of an axis, within its limit.
    fn wanted(&mut self, index: usize) -> RadiansPerSecond {
        let settings = &self.axes[index];
        let limit = settings.velocity_limit.0;
        let Some(AxisTarget::Velocity(asked)) = self.targets[index] else { return RadiansPerSecond::ZERO };
        let possible = asked.0.clamp(-limit, limit);
        self.clamped =
            self.clamped.or_else(|| clamped(Limit::Velocity, Some(settings.axis), asked.0, possible));
        RadiansPerSecond(possible)
    }

    /// Sets the velocity of an axis; the motion changes smoothly.
    fn aim(&mut self, index: usize, velocity: RadiansPerSecond) {
        let aim = self.aims[index];
        if velocity == aim.velocity && (aim.wall.is_none() || aim.planned) {
            return;
        }
        let wall = self.wall(index, velocity);
        let planned = wall.is_some_and(|wall| {
            self.motion.approach(index, wall, RadiansPerSecond(velocity.0.abs())).is_ok()
        });
        let goes_on = velocity == aim.velocity;
        if planned || goes_on || self.motion.aim_axis(index, Target::Velocity(velocity)).is_ok() {
            self.aims[index] = Aim { velocity, wall, planned };
        }
    }

    /// Position limit that a velocity leads to: an axis that is sent positions stops there.
    fn wall(&self, index: usize, velocity: RadiansPerSecond) -> Option<Radians> {
        let (lowest, highest) = self.axes[index].position_limits?;
        if self.modes[index] != CyclicMode::Position || velocity == RadiansPerSecond::ZERO {
            return None;
        }
        let end = if velocity.0 > 0.0 { highest } else { lowest };
        // From outside its limits it moves no farther out.
        Some(self.axes[index].within(end, self.motion.points()[index].position))
    }

    /// Set-point of an axis that is at `here`.
    fn setpoint(&self, index: usize, here: Radians) -> AxisSetpoint {
        let mut setpoint: AxisSetpoint = self.motion.points()[index].into();
        if self.modes[index] == CyclicMode::Position {
            setpoint.position = self.axes[index].within(setpoint.position, here);
        }
        setpoint
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
        for index in 0..self.axes.len() {
            let axis = self.axes[index].axis;
            let (Some(report), Some(command)) = (reports.get(axis), commands.get_mut(axis)) else {
                continue;
            };
            command.request = Request::Enable;
            // In CSV only the velocity matters: the axis may be at another position than the
            // motion.
            if let AxisPhase::HoldingAt(position) = report.feedback.phase {
                begin(&mut self.motion, index, position);
                self.aims[index] = Aim::default();
            }
            if report.feedback.phase == AxisPhase::NotEnabled {
                continue;
            }
            let wanted = if info.stopping { RadiansPerSecond::ZERO } else { self.wanted(index) };
            self.aim(index, wanted);
            let at_limit = self.aims[index].planned && self.motion.is_there(index);
            let limit = at_limit.then_some(Clamped { limit: Limit::Position, axis: Some(axis) });
            self.clamped = self.clamped.or(limit);
            command.setpoint = self.setpoint(index, report.feedback.position);
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput { commanded: true, clamped: self.clamped, ..ControllerOutput::default() }
    }
}

/// Gives axes in modes CST and TQ the commanded torques, within their limits. An axis without a
/// command gets none.
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

/// Starts the motion of an axis at standstill at `position`.
pub(crate) fn begin(motion: &mut OnlineMotion, index: usize, position: Radians) {
    // A position that is not a finite number comes from no drive: the axis stays in place.
    let _ = motion.begin(index, TrajectoryPoint { position, ..TrajectoryPoint::default() });
}

#[cfg(test)]
mod tests {
    use control::controller::AxisReport;
    use control::signal::Signals;
    use motion::{AxisFeedback, RadiansPerSecondCubed, RadiansPerSecondSquared};

    use super::*;

    // feature(axes): `joint_position` gives an axis in pp its destination, and halts it to bring it to rest
    #[test]
    fn profile_mode_axis_gets_destinations_and_is_halted() {
        let settings = AxisSettings {
            axis: 0,
            profile: true,
            position_limits: Some((Radians(-1.0), Radians(1.0))),
            velocity_limit: RadiansPerSecond(2.0),
            acceleration_limit: RadiansPerSecondSquared(8.0),
            jerk_limit: RadiansPerSecondCubed(80.0),
        };
        let mut controller = JointPosition::new(&[settings]).unwrap();
        let mut commands = [AxisCommand::default()];
        let mut update = |phase, position, asked: Option<f64>, stopping| {
            let axes = vec![asked.map(|it| AxisTarget::Position(Radians(it)))];
            let freshness = Freshness::Fresh;
            controller.command(&ExternalCommand { freshness, axes, ..ExternalCommand::default() });
            let feedback =
                AxisFeedback { position: Radians(position), phase, fresh: true, ..AxisFeedback::default() };
            let reports = [AxisReport { feedback, ..AxisReport::default() }];
            let period = std::time::Duration::from_millis(1);
            let release = ethercat::time::Instant::from_nanos(0);
            let info = CycleInfo { cycle: 0, release, bus_time: release, period, periods: 1, stopping };
            controller.update(info, &mut Io::new(&mut Signals::default(), &reports, &mut commands));
            let clamped = controller.output().clamped.is_some();
            (commands[0].request, commands[0].setpoint.position.0, clamped)
        };
        let (held, following) = (|at| AxisPhase::HoldingAt(Radians(at)), AxisPhase::Following);
        assert_eq!(
            update(held(0.2), 0.2, Some(0.9), false),
            (Request::Enable, 0.2, false),
            "where it is held"
        );
        assert_eq!(update(following, 0.2, Some(0.9), false), (Request::Enable, 0.9, false));
        assert_eq!(update(following, 0.3, Some(7.0), false), (Request::Enable, 1.0, true));
        assert_eq!(update(following, 0.4, None, false), (Request::Enable, 1.0, false), "it goes on");
        assert_eq!(update(following, 0.5, Some(0.9), true).0, Request::Halt);
        assert_eq!(update(held(0.6), 0.6, Some(0.9), true).0, Request::Halt, "until the stop is over");
        assert_eq!(update(held(0.7), 0.7, Some(0.9), false), (Request::Enable, 0.7, false));
    }
}
