//! Base controller: follows a twist, and reports pose and twist by odometry.

use control::controller::{
    AxisReport, Clamped, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness,
};
use control::signal::Io;
use ethercat::cia402::Request;
use ipc::state::Limit;
use motion::base::{Pose, Twist};
use motion::kinematics::{DifferentialDrive, OmniBase};
use motion::odometry::Odometry;
use motion::online::{OnlineError, OnlineTwist, TwistLimits};
use motion::{AxisPhase, AxisSetpoint, Radians, RadiansPerSecond};

use crate::axis::{clamped, elapsed};

/// A base whose wheels, in mode CSV, follow the commanded twist.
///
/// A twist beyond the limits of the base or its wheels is scaled down in all its parts alike: the base
/// keeps to its arc. Velocity, acceleration and jerk of the base are bounded. Without a fresh twist it
/// comes to rest; and while one wheel's drive is not enabled or stopped, the others come to rest too.
#[derive(Clone, Debug)]
pub struct BaseController {
    base: Base,
    /// Index of each wheel's axis.
    wheels: Vec<usize>,
    /// Highest speed of a wheel.
    wheel_limit: RadiansPerSecond,
    motion: OnlineTwist,
    wanted: Option<Twist>,
    aim: Twist,
    /// Limit of the base or its wheels that the command exceeds.
    clamped: Option<Clamped>,
    twist: Twist,
}

/// Kinematics of the base, with its odometry.
#[derive(Clone, Debug)]
enum Base {
    Differential(Odometry<DifferentialDrive, 2>),
    Omni(Odometry<OmniBase, 4>),
}

impl BaseController {
    /// A differential drive on the axes of its `[left, right]` wheels, with `wheel_limit` as the highest
    /// speed of each.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn differential(
        base: DifferentialDrive,
        wheels: [usize; 2],
        wheel_limit: RadiansPerSecond,
        limits: TwistLimits,
    ) -> Result<Self, OnlineError> {
        Self::new(Base::Differential(Odometry::new(base)), wheels.to_vec(), wheel_limit, limits)
    }

    /// A base of four wheels with rollers on their axes, in the order of `base`.
    ///
    /// # Errors
    /// A limit that is not finite and above 0.
    pub fn omni(
        base: OmniBase,
        wheels: [usize; 4],
        wheel_limit: RadiansPerSecond,
        limits: TwistLimits,
    ) -> Result<Self, OnlineError> {
        Self::new(Base::Omni(Odometry::new(base)), wheels.to_vec(), wheel_limit, limits)
    }

    fn new(
        base: Base,
        wheels: Vec<usize>,
        wheel_limit: RadiansPerSecond,
        limits: TwistLimits,
    ) -> Result<Self, OnlineError> {
        let (motion, at_rest) = (OnlineTwist::new(limits)?, Twist::default());
        Ok(Self {
            base,
            wheels,
            wheel_limit,
            motion,
            wanted: None,
            aim: at_rest,
            clamped: None,
            twist: at_rest,
        })
    }

    /// Pose by odometry.
    #[must_use]
    pub fn pose(&self) -> Pose {
        match &self.base {
            Base::Differential(odometry) => odometry.pose(),
            Base::Omni(odometry) => odometry.pose(),
        }
    }

    /// Restarts odometry from the next positions: a wheel's position has jumped without the base.
    pub(crate) fn restart(&mut self) {
        match &mut self.base {
            Base::Differential(odometry) => odometry.restart(),
            Base::Omni(odometry) => odometry.restart(),
        }
    }

    /// Updates odometry, once per cycle, also while another controller moves the wheels.
    pub(crate) fn watch(&mut self, reports: &[AxisReport]) {
        let mut wheels = self.wheels.iter().filter_map(|&wheel| reports.get(wheel));
        if !wheels.all(|report| report.feedback.fresh) {
            // Positions are absolute: the next ones make up for these.
            return;
        }
        let position = |wheel: usize| reports.get(wheel).map_or(Radians::ZERO, |it| it.feedback.position);
        let velocity =
            |wheel: usize| reports.get(wheel).map_or(RadiansPerSecond::ZERO, |it| it.feedback.velocity);
        match (&mut self.base, &self.wheels[..]) {
            (Base::Differential(odometry), &[left, right]) => {
                // A position that is not a finite number moves nothing.
                let _ = odometry.update([left, right].map(position));
                self.twist = odometry.base().twist([left, right].map(velocity));
            }
            (Base::Omni(odometry), &[a, b, c, d]) => {
                let _ = odometry.update([a, b, c, d].map(position));
                self.twist = odometry.base().twist([a, b, c, d].map(velocity));
            }
            _ => {}
        }
    }

    /// Commanded twist, limited to what the base and its wheels can do.
    fn possible(&self, asked: Twist) -> Twist {
        if asked.is_finite() { self.within(self.motion.within(asked)) } else { Twist::default() }
    }

    /// Twist scaled down until no wheel exceeds its limit.
    fn within(&self, twist: Twist) -> Twist {
        match &self.base {
            Base::Differential(odometry) => odometry.base().within(twist, self.wheel_limit),
            Base::Omni(odometry) => odometry.base().within(twist, self.wheel_limit),
        }
    }

    /// Speed of wheel `number` in a twist.
    fn wheel(&self, twist: Twist, number: usize) -> RadiansPerSecond {
        let wheel = match &self.base {
            Base::Differential(odometry) => odometry.base().wheels(twist).get(number).copied(),
            Base::Omni(odometry) => odometry.base().wheels(twist).get(number).copied(),
        };
        wheel.unwrap_or_default()
    }
}

impl Controller for BaseController {
    fn command(&mut self, command: &ExternalCommand) {
        self.wanted = command.twist.filter(|_| command.freshness == Freshness::Fresh);
    }

    fn update(&mut self, info: CycleInfo, io: &mut Io<'_>) {
        let (reports, commands) = io.split();
        self.watch(reports);
        let wheels = || self.wheels.iter().filter_map(|&wheel| reports.get(wheel));
        let ready = wheels().all(|report| match report.feedback.phase {
            AxisPhase::NotEnabled => false,
            AxisPhase::HoldingAt(_) => report.stop.is_none(),
            AxisPhase::Following => true,
        });
        if !wheels().any(|report| report.feedback.phase == AxisPhase::Following) {
            // No axis moves the wheels, so there is nothing to bring to rest.
            self.motion.halt();
            self.aim = Twist::default();
        }
        let asked = self.wanted.filter(|_| ready && !info.stopping).unwrap_or_default();
        let wanted = self.possible(asked);
        let parts = [(asked.x.0, wanted.x.0), (asked.y.0, wanted.y.0), (asked.yaw.0, wanted.yaw.0)];
        self.clamped =
            parts.into_iter().find_map(|(asked, slowed)| clamped(Limit::Velocity, None, asked, slowed));
        if wanted != self.aim && self.motion.aim(wanted).is_ok() {
            self.aim = wanted;
        }
        let twist = self.motion.advance(elapsed(&info));
        let twist = self.within(twist);
        for (number, &wheel) in self.wheels.iter().enumerate() {
            let (Some(report), Some(command)) = (reports.get(wheel), commands.get_mut(wheel)) else {
                continue;
            };
            command.request = Request::Enable;
            command.setpoint = AxisSetpoint {
                position: report.feedback.position,
                velocity: self.wheel(twist, number),
                ..AxisSetpoint::default()
            };
        }
    }

    fn output(&self) -> ControllerOutput {
        ControllerOutput {
            pose: self.pose(),
            twist: self.twist,
            commanded: true,
            clamped: self.clamped,
            ..ControllerOutput::default()
        }
    }
}
