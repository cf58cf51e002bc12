//! Base controller: follows a twist, and reports pose and twist by odometry.

use control::controller::{
    AxisReport, Controller, ControllerOutput, CycleInfo, ExternalCommand, Freshness, Io,
};
use ethercat::cia402::Request;
use ipc::state::{Clamped, Limit};
use motion::base::{Pose, Twist};
use motion::kinematics::{DifferentialDrive, OmniBase};
use motion::odometry::Odometry;
use motion::online::{OnlineError, OnlineTwist, TwistLimits};
use motion::{AxisPhase, AxisSetpoint, MetresPerSecond, Radians, RadiansPerSecond};

use crate::axis::{clamped, elapsed};

/// A base with wheels in mode CSV that follow the commanded twist.
///
/// A twist beyond the limits of the base or its wheels is scaled down in all parts alike: the base
/// keeps its arc. Velocity, acceleration and jerk of the base are bounded. Without a fresh twist
/// the base stops. If one wheel's drive is not enabled or stopped, the other wheels stop too.
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
    /// A differential drive on the axes of its `[left, right]` wheels, with `wheel_limit` as the
    /// highest speed of each.
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

    /// Twist scaled down in all its parts alike until no wheel exceeds its limit; without y where
    /// the base cannot move sideways.
    fn within(&self, twist: Twist) -> Twist {
        let y = match self.base {
            Base::Differential(_) => MetresPerSecond::ZERO,
            Base::Omni(_) => twist.y,
        };
        let twist = Twist { y, ..twist };
        let fastest =
            self.base.wheels(twist).into_iter().map(RadiansPerSecond::abs).fold(0.0, |a, b| b.0.max(a));
        twist.scaled((self.wheel_limit.0 / fastest).min(1.0))
    }
}

impl Base {
    /// Speeds of the wheels in a twist, in their order; 0 for wheels that the base does not have.
    fn wheels(&self, twist: Twist) -> [RadiansPerSecond; 4] {
        match self {
            Self::Differential(odometry) => {
                let [left, right] = odometry.base().wheels(twist);
                [left, right, RadiansPerSecond::ZERO, RadiansPerSecond::ZERO]
            }
            Self::Omni(odometry) => odometry.base().wheels(twist),
        }
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
            // No axis moves the wheels, so there is nothing to stop.
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
        let speeds = self.base.wheels(self.within(twist));
        for (&wheel, velocity) in self.wheels.iter().zip(speeds) {
            let (Some(report), Some(command)) = (reports.get(wheel), commands.get_mut(wheel)) else {
                continue;
            };
            command.request = Request::Enable;
            command.setpoint =
                AxisSetpoint { position: report.feedback.position, velocity, ..AxisSetpoint::default() };
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

#[cfg(test)]
mod tests {
    use motion::{
        Metres, MetresPerSecondCubed, MetresPerSecondSquared, RadiansPerSecondCubed,
        RadiansPerSecondSquared,
    };
    use proptest::prelude::*;

    use super::*;

    const LIMITS: TwistLimits = TwistLimits {
        velocity: MetresPerSecond(1.0),
        acceleration: MetresPerSecondSquared(1.0),
        jerk: MetresPerSecondCubed(5.0),
        yaw_velocity: RadiansPerSecond(2.0),
        yaw_acceleration: RadiansPerSecondSquared(4.0),
        yaw_jerk: RadiansPerSecondCubed(20.0),
    };

    fn bases(wheel_limit: RadiansPerSecond) -> [BaseController; 2] {
        let drive = DifferentialDrive::new(Metres(0.1016), Metres(0.4)).unwrap();
        let omni =
            OmniBase::mecanum(Metres(0.1), Metres(0.5), Metres(0.4), Radians(std::f64::consts::FRAC_PI_4));
        [
            BaseController::differential(drive, [0, 1], wheel_limit, LIMITS).unwrap(),
            BaseController::omni(omni.unwrap(), [0, 1, 2, 3], wheel_limit, LIMITS).unwrap(),
        ]
    }

    proptest! {
        /// Wheels of both kinds of bases stay within their limit, on the requested arc.
        #[test]
        fn no_wheel_is_faster_than_its_limit_and_the_way_stays_the_same(
            x in -2.0..2.0, y in -2.0..2.0, yaw in -3.0..3.0, limit in 0.1..30.0,
        ) {
            for base in bases(RadiansPerSecond(limit)) {
                let y = if matches!(base.base, Base::Omni(_)) { y } else { 0.0 };
                let fastest =
                    |twist| base.base.wheels(twist).into_iter().map(|wheel| wheel.0.abs()).fold(0.0, f64::max);
                let asked = Twist::new(x, y, yaw);
                let slowed = base.within(asked);
                prop_assert!(fastest(slowed) <= limit * (1.0 + 1e-12));
                prop_assert!((slowed.x.0 * y - slowed.y.0 * x).abs() < 1e-9);
                prop_assert!((slowed.x.0 * yaw - slowed.yaw.0 * x).abs() < 1e-9);
                if fastest(asked) <= limit {
                    prop_assert_eq!(slowed, asked);
                } else {
                    prop_assert!((fastest(slowed) - limit).abs() < 1e-9);
                }
            }
        }
    }

    /// A base on two wheels drops sideways motion, and a base at standstill stays there.
    #[test]
    fn a_base_on_two_wheels_is_not_moved_sideways() {
        let [drive, omni] = bases(RadiansPerSecond(5.0));
        let sideways = Twist::new(0.1, 0.2, 0.0);
        assert_eq!(drive.within(sideways), Twist::new(0.1, 0.0, 0.0));
        assert_eq!(omni.within(sideways), sideways);
        assert_eq!(omni.within(Twist::default()), Twist::default());
    }
}
