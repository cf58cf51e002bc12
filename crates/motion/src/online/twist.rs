//! Velocity of a base that follows its command with bounded acceleration and jerk.

use super::OnlineError;
use super::plan::{Aim, Bounds, Plan};
use crate::base::Twist;
use crate::units::{
    MetresPerSecond, MetresPerSecondCubed, MetresPerSecondSquared, RadiansPerSecond, RadiansPerSecondCubed,
    RadiansPerSecondSquared, Seconds,
};

/// Jerk-limited velocity of a base: x, y and yaw each approach the last command separately.
#[derive(Clone, Debug)]
pub struct OnlineTwist {
    plans: [Plan; 3],
    limits: TwistLimits,
}

/// Limits of a base; all above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwistLimits {
    /// Of x and y.
    pub velocity: MetresPerSecond,
    /// Of x and y.
    pub acceleration: MetresPerSecondSquared,
    /// Of x and y.
    pub jerk: MetresPerSecondCubed,
    /// Of yaw.
    pub yaw_velocity: RadiansPerSecond,
    /// Of yaw.
    pub yaw_acceleration: RadiansPerSecondSquared,
    /// Of yaw.
    pub yaw_jerk: RadiansPerSecondCubed,
}

impl OnlineTwist {
    /// At standstill.
    ///
    /// # Errors
    /// A limit that is not finite and above 0. Axis 0 is x, 1 is y, 2 is yaw.
    pub fn new(limits: TwistLimits) -> Result<Self, OnlineError> {
        let ahead = Bounds {
            velocity: limits.velocity.0,
            acceleration: limits.acceleration.0,
            jerk: limits.jerk.0,
        };
        let yaw = Bounds {
            velocity: limits.yaw_velocity.0,
            acceleration: limits.yaw_acceleration.0,
            jerk: limits.yaw_jerk.0,
        };
        for (axis, bounds) in [(0, ahead), (2, yaw)] {
            if let Some((name, found)) = bounds.wrong() {
                return Err(OnlineError::Limit { axis, name, found });
            }
        }
        Ok(Self { plans: [ahead, ahead, yaw].map(Plan::new), limits })
    }

    /// `twist`, slower in all its parts alike until it is within the limits: the base keeps to its
    /// arc.
    #[must_use]
    pub fn within(&self, twist: Twist) -> Twist {
        let TwistLimits { velocity, yaw_velocity, .. } = self.limits;
        let (ahead, yaw) = (velocity.0 / twist.x.0.hypot(twist.y.0), yaw_velocity.0 / twist.yaw.0.abs());
        twist.scaled(ahead.min(yaw).min(1.0))
    }

    /// Sets the twist of the base from now on, limited by [`OnlineTwist::within`].
    ///
    /// # Errors
    /// A number that is not finite: the base continues to the old twist.
    pub fn aim(&mut self, twist: Twist) -> Result<(), OnlineError> {
        let asked = [twist.x.0, twist.y.0, twist.yaw.0];
        for (axis, &found) in asked.iter().enumerate() {
            if !found.is_finite() {
                return Err(OnlineError::NotFinite { axis, found });
            }
        }
        let Twist { x, y, yaw } = self.within(twist);
        for (axis, (plan, aim)) in self.plans.iter_mut().zip([x.0, y.0, yaw.0]).enumerate() {
            // Scaled, it may be rounded up.
            let limit = plan.bounds.velocity;
            plan.prepare(plan.moment(), Aim::Velocity(aim.clamp(-limit, limit)), None)
                .map_err(|why| why.of(axis))?;
        }
        for plan in &mut self.plans {
            plan.take_up();
        }
        Ok(())
    }

    /// Time passes: the twist then.
    pub fn advance(&mut self, period: Seconds) -> Twist {
        for plan in &mut self.plans {
            plan.advance(period.0);
        }
        self.twist()
    }

    /// The twist now.
    #[must_use]
    pub fn twist(&self) -> Twist {
        let [x, y, yaw] = [0, 1, 2].map(|axis| self.plans[axis].moment().velocity);
        Twist { x: MetresPerSecond(x), y: MetresPerSecond(y), yaw: RadiansPerSecond(yaw) }
    }

    /// Sets standstill at once, as after a fault.
    pub fn halt(&mut self) {
        for plan in &mut self.plans {
            plan.stand_at(0.0);
        }
    }

    /// The twist equals the last command.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.plans.iter().all(|plan| plan.remaining() == 0.0)
    }
}
