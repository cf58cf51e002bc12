//! Look-ahead from the worse of set-point and actual position, where positions are commanded.
//!
//! An axis may be ahead of its set-point, as with a load that overshoots. Its actual position then
//! gives the distance to a position limit. Set-points brake for it within their own limits: they
//! never jump.

use super::{CyclicMode, Supervisor, at_wall};
use crate::axis::{AxisFeedback, AxisPhase};
use crate::units::{Radians, RadiansPerSecond, Seconds};

impl Supervisor {
    /// Notes how far the axis is ahead of its set-point; up to a largest step it counts as there.
    pub(super) fn note_lead(&mut self, feedback: &AxisFeedback) {
        let follows = feedback.fresh && feedback.phase == AxisPhase::Following;
        if self.mode() != CyclicMode::Position || self.drive_makes_the_way() || !follows {
            self.lead = Radians::ZERO;
            return;
        }
        let ahead = feedback.position - self.sent.position;
        self.lead = if ahead.abs() > self.settings.limits.step { ahead } else { Radians::ZERO };
    }

    /// Position limits of the set-point: the limits of the axis, less its lead over the set-point.
    pub(super) fn room(&self) -> Option<(Radians, Radians)> {
        let (lowest, highest) = self.bounds()?;
        let here = self.sent.position.0;
        let (behind, ahead) = (self.lead.0.min(0.0), self.lead.0.max(0.0));
        Some((Radians((lowest.0 - behind).min(here)), Radians((highest.0 - ahead).max(here))))
    }

    /// A target, limited to the distance that an axis ahead of its set-point has left.
    pub(super) fn goal(&self, target: f64) -> f64 {
        match self.room() {
            Some((lowest, highest)) if self.lead != Radians::ZERO => target.clamp(lowest.0, highest.0),
            _ => target,
        }
    }

    /// `velocity` that stops within [`Self::room`] too, braked no harder than a stop.
    pub(super) fn slowed_for_lead(&self, velocity: RadiansPerSecond, elapsed: Seconds) -> RadiansPerSecond {
        if self.lead == Radians::ZERO {
            return velocity;
        }
        let acceleration = self.settings.limits.acceleration;
        let within = at_wall(velocity, self.sent.position, self.room(), acceleration, elapsed);
        let braked = self.braked(elapsed);
        match velocity.0 > 0.0 {
            true => RadiansPerSecond(velocity.0.min(within.0.max(braked.0))),
            false => RadiansPerSecond(velocity.0.max(within.0.min(braked.0))),
        }
    }
}
