//! Progress along a path of any kind: from 0 to 1, with bounds of the path's own.

use super::OnlineError;
use super::plan::{Aim, Bounds, Plan};
use crate::units::Seconds;

/// Jerk-limited progress along a path, from standstill at 0 to standstill at 1; it may be stopped
/// in between.
#[derive(Clone, Debug)]
pub struct Progress {
    plan: Plan,
}

/// Bounds of a progress; all above 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgressLimits {
    /// Paths a second.
    pub velocity: f64,
    /// Paths a second squared.
    pub acceleration: f64,
    /// Paths a second cubed.
    pub jerk: f64,
}

/// Progress at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Place {
    /// Part of the path behind it, 0 to 1.
    pub progress: f64,
    /// Its rate.
    pub velocity: f64,
    /// Rate of its velocity.
    pub acceleration: f64,
}

impl Default for Progress {
    fn default() -> Self {
        let mut plan = Plan::new(Bounds { velocity: 1.0, acceleration: 1.0, jerk: 1.0 });
        plan.stand_at(1.0);
        Self { plan }
    }
}

impl Progress {
    /// Begins at 0, within these bounds.
    ///
    /// # Errors
    /// A bound that is not finite and above 0, a path that takes more than two hours: the progress
    /// stays as it is.
    pub fn begin(&mut self, limits: ProgressLimits) -> Result<(), OnlineError> {
        let ProgressLimits { velocity, acceleration, jerk } = limits;
        let bounds = Bounds { velocity, acceleration, jerk };
        if let Some((name, found)) = bounds.wrong() {
            return Err(OnlineError::Limit { axis: 0, name, found });
        }
        self.plan.stand_within(bounds, 0.0);
        self.aim(Aim::Position { position: 1.0, velocity: 0.0 })
    }

    /// Stops as soon as the limits allow.
    ///
    /// # Errors
    /// No motion was found: the progress continues.
    pub fn stop(&mut self) -> Result<(), OnlineError> {
        self.aim(Aim::Velocity(0.0))
    }

    /// Time passes: the place then.
    pub fn advance(&mut self, period: Seconds) -> Place {
        self.plan.advance(period.0);
        let moment = self.plan.moment();
        // Braking just before the end may round beyond it.
        let progress = moment.position.clamp(0.0, 1.0);
        Place { progress, velocity: moment.velocity, acceleration: moment.acceleration }
    }

    /// True at standstill: at 1, or where it was stopped.
    #[must_use]
    pub fn arrived(&self) -> bool {
        self.plan.remaining() == 0.0
    }

    fn aim(&mut self, aim: Aim) -> Result<(), OnlineError> {
        self.plan.prepare(self.plan.moment(), aim, None).map_err(|why| why.of(0))?;
        self.plan.take_up();
        Ok(())
    }
}
