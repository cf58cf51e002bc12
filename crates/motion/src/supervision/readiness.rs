//! Axes that a controller must not move: not homed, outside their limits, in set-up mode, or in a
//! chain with an axis that is not ready. A jog moves them.

use super::{
    Braking, CyclicMode, Hold, Limits, NewtonMetres, Radians, RadiansPerSecond, Seen, StopReason,
    Supervisor,
};
use crate::axis::{AxisFeedback, AxisPhase};

impl Supervisor {
    /// The same with another tolerance of its position, 0 rad otherwise.
    #[must_use]
    pub const fn with_tolerance(mut self, tolerance: Radians) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Reason that keeps its controller from moving it and the axes of its chain: it is
    /// unreferenced, not homed, or too far outside its limits.
    #[must_use]
    pub fn unready(&self) -> Option<StopReason> {
        self.unreferenced().or(self.not_ready)
    }

    /// Holds this axis as long as another one of its controller's chain is not ready, unless
    /// something else has stopped it; between [`Self::judge`] and [`Self::send`] in every cycle.
    pub fn hold_with_chain(&mut self, held: bool) {
        self.jogging.chain = held;
        match &mut self.hold {
            Hold::Free if held => self.stop(StopReason::Chain, None),
            Hold::Stopped { reason: reason @ StopReason::Stale, .. } if held => {
                *reason = StopReason::Chain;
            }
            _ => {}
        }
    }

    /// Notes in every cycle the conditions that keep a controller from moving it.
    pub(super) fn watch_readiness(&mut self, seen: &Seen) {
        // A drive that homes is shown as not enabled.
        let enabled = seen.homing || seen.feedback.phase != AxisPhase::NotEnabled;
        if seen.set_up && !self.stopped().is_some_and(StopReason::is_latched) {
            // A reset counts once set-up mode has ended.
            self.acknowledged = false;
        }
        self.jogging.after_set_up = match seen.set_up {
            true => self.jogging.after_set_up || enabled,
            // A disabled drive needs a separate request to be enabled.
            false => self.jogging.after_set_up && enabled && !self.acknowledged,
        };
        self.in_set_up = seen.set_up;
        if seen.feedback.fresh {
            let least = if self.is_outside { super::ROUNDING.0 } else { self.tolerance.0 };
            self.is_outside = self.outside(seen.feedback.position) > least.max(super::ROUNDING.0);
        }
        self.not_ready = match self.not_ready {
            _ if seen.not_homed => Some(StopReason::NotHomed),
            // A position that is not trusted says nothing new.
            Some(reason @ StopReason::OutsideLimits) if !seen.feedback.fresh => Some(reason),
            _ if seen.feedback.fresh && self.is_far_outside(&seen.feedback) => {
                Some(StopReason::OutsideLimits)
            }
            _ => None,
        };
    }

    /// Reason that keeps a controller from moving it, but for a stop.
    pub(super) fn waits_for(&self) -> Option<StopReason> {
        let set_up = match (self.in_set_up, self.jogging.after_set_up) {
            (true, _) => Some(StopReason::SetUp),
            (false, true) => Some(StopReason::AfterSetUp),
            (false, false) => None,
        };
        self.not_ready.filter(|&it| it == StopReason::NotHomed).or(set_up).or(self.not_ready)
    }

    /// True if such a hold may end.
    pub(super) fn is_ready_again(&self, reason: StopReason) -> bool {
        match reason {
            StopReason::Chain => !self.jogging.chain,
            _ => self.waits_for() != Some(reason),
        }
    }

    /// Holds an axis that no controller may move.
    pub(super) fn hold_unready(&mut self) {
        let Some(wanted) = self.waits_for() else { return };
        match &mut self.hold {
            Hold::Free => self.stop(wanted, None),
            Hold::Stopped { reason, braking: Braking::Hard | Braking::Ramp { .. } }
                if matches!(
                    reason,
                    StopReason::Stale
                        | StopReason::Chain
                        | StopReason::NotHomed
                        | StopReason::OutsideLimits
                        | StopReason::SetUp
                        | StopReason::AfterSetUp
                ) =>
            {
                *reason = wanted;
            }
            Hold::Stopped { .. } => {}
        }
    }

    /// True if it is outside its position limits by more than its braking distance and its
    /// tolerance. Only in modes in which a jog brings it back.
    fn is_far_outside(&self, feedback: &AxisFeedback) -> bool {
        let Limits { velocity, deceleration, .. } = self.settings.limits;
        let most = velocity.0 * velocity.0 / (2.0 * deceleration.0) + self.tolerance.0;
        self.takes_jogs() && self.outside(feedback.position) > most
    }

    /// The reason of an axis outside its limits in a mode in which no jog brings it back, while it
    /// is enabled, or if it passed a limit by its own torque.
    pub(super) fn moves_inwards_only(&self, seen: &Seen) -> Option<StopReason> {
        let enabled = seen.feedback.phase != AxisPhase::NotEnabled;
        let counts = self.is_outside && !self.takes_jogs() && (enabled || self.overshoots());
        counts.then_some(StopReason::InwardsOnly)
    }

    /// Lowest and highest torque. Outside the position limits no torque may move the axis farther
    /// out.
    pub(super) fn torques(&self, place: Radians) -> (NewtonMetres, NewtonMetres) {
        let Limits { position, torque, .. } = self.settings.limits;
        let inwards_only = |is_outside| if is_outside { NewtonMetres::ZERO } else { torque };
        let (below, above) =
            position.map_or((false, false), |(lowest, highest)| (place < lowest, place > highest));
        (NewtonMetres(-inwards_only(below).0), inwards_only(above))
    }

    /// Distance of a place from the position limits; 0 within them.
    fn outside(&self, place: Radians) -> f64 {
        let Some((lowest, highest)) = self.settings.limits.position else { return 0.0 };
        (lowest - place).0.max((place - highest).0).max(0.0)
    }

    /// Notes whether the axis is on its way back into its limits, where it is as slow as in a jog.
    pub(super) fn watch_return(&mut self, feedback: &AxisFeedback, reached: bool) {
        let place = match self.mode() {
            CyclicMode::Position => self.sent.position,
            CyclicMode::Velocity => feedback.position,
            CyclicMode::Torque => return,
        };
        self.returns = match self.outside(place) > super::ROUNDING.0 {
            true => true,
            false => self.returns && !reached && self.mode() == CyclicMode::Position,
        };
    }

    /// Its limits in this cycle: a jog, and the way back into the position limits, are slower.
    pub(super) fn limits_now(&self) -> Limits {
        let slow = self.jogs() || self.returns && !self.drive_makes_the_way();
        let limits = self.settings.limits;
        let velocity = match slow {
            true => RadiansPerSecond(limits.velocity.0.min(self.jogging.limits.velocity.0)),
            false => limits.velocity,
        };
        Limits { velocity, ..limits }
    }
}
