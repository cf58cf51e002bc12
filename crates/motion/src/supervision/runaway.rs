//! Runaway: an axis in csv or cst that moves against its command, or faster than it.
//!
//! * csv: the speeds that the command explains reach from 0 to the velocity sent, and while that falls down to it at the
//!   acceleration limit. An axis beyond them by more than the velocity error runs away. A blocked axis does not.
//! * cst: an axis faster than the velocity error, against the torque sent, that does not slow down.
//!
//! It has to last for [`RUNAWAY_TIME`]. Only an axis that follows its controller is evaluated: none that is stopped,
//! that its drive brakes, or that has no torque.

use super::{CyclicMode, Seen, Supervisor};
use crate::axis::AxisPhase;
use crate::units::{RadiansPerSecond, Seconds};

/// What is known of a runaway so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runaway {
    /// Lowest and highest velocity that the commands explain; `None` before the axis follows.
    explained: Option<(f64, f64)>,
    /// Time for which the axis has run away.
    since: Seconds,
    /// Its speed when that began.
    from: f64,
}

impl Supervisor {
    /// The same with this velocity error; `None` is [`VELOCITY_ERROR`] of the velocity limit.
    #[must_use]
    pub fn with_velocity_error(mut self, error: Option<RadiansPerSecond>) -> Self {
        self.velocity_error = error.unwrap_or(self.settings.limits.velocity * VELOCITY_ERROR);
        self
    }

    /// True once the axis has run away from its command for [`RUNAWAY_TIME`].
    pub(super) fn runs_away(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
        let feedback = &seen.feedback;
        let is_evaluated = feedback.phase == AxisPhase::Following
            && !seen.braking
            && self.quick_stop.is_none()
            && self.mode() != CyclicMode::Position
            && (self.mode() == CyclicMode::Torque || !self.drive_makes_the_way());
        if !is_evaluated {
            self.runaway = Runaway::default();
            return false;
        }
        let actual = feedback.velocity.0;
        let sent = self.sent.velocity.0;
        let (lowest, highest) = self.runaway.explained.unwrap_or((actual, actual));
        let fall = self.settings.limits.acceleration.0 * elapsed.0;
        let explained = (sent.min(lowest + fall), sent.max(highest - fall));
        self.runaway.explained = Some(explained);
        if !feedback.fresh {
            return false;
        }
        let error = self.velocity_error.0;
        let is_away = match self.mode() {
            CyclicMode::Torque => {
                let torque = self.sent.torque.0;
                let pulls = torque.abs() > self.settings.limits.torque.0 * PULLS;
                let lasts = self.runaway.since > Seconds::ZERO;
                let slows = lasts && actual.abs() < self.runaway.from;
                pulls && actual * torque < 0.0 && actual.abs() > error && !slows
            }
            _ => actual > explained.1.max(0.0) + error || actual < explained.0.min(0.0) - error,
        };
        if !is_away {
            self.runaway.since = Seconds::ZERO;
            return false;
        }
        if self.runaway.since == Seconds::ZERO {
            self.runaway.from = actual.abs();
        }
        self.runaway.since += elapsed;
        self.runaway.since >= RUNAWAY_TIME
    }
}

/// Time that a runaway lasts before the axis is stopped.
pub const RUNAWAY_TIME: Seconds = Seconds(0.05);

/// Default of the velocity error, as a share of the velocity limit.
pub const VELOCITY_ERROR: f64 = 0.25;

/// Share of the torque limit from which a torque has a direction.
const PULLS: f64 = 0.01;
