//! Runaway: an axis in csv or cst that moves against its command, or faster than it.
//!
//! * csv: the speeds that the command explains reach from 0 to the velocity sent, and while that
//!   falls down to it at the acceleration limit. An axis beyond them by more than the velocity
//!   error, that does not get slower, runs away. A blocked axis does not.
//! * cst: an axis faster than the velocity error, against the torque sent, that gets faster. An
//!   axis that holds a load without a brake is not evaluated: without torque the load would fall.
//!
//! It has to last for [`RUNAWAY_TIME`]. Axes that follow set-points are evaluated; in csv also
//! during a jog, a hold, or a stop. While the drive brakes, `halting` and `quick_stop` evaluate the
//! axis.

use super::{CyclicMode, STANDS, Seen, Supervisor};
use crate::axis::AxisPhase;
use crate::units::{RadiansPerSecond, Seconds};

/// State of the watch for a runaway.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Runaway {
    /// Lowest and highest velocity that the commands explain; `None` before the axis follows.
    explained: Option<(f64, f64)>,
    /// Time for which the axis has run away.
    since: Seconds,
    /// Reference speed of the comparison. In cst it is the lowest speed since the axis moves
    /// against its torque.
    from: Option<f64>,
}

impl Runaway {
    /// Time for which the axis has run away.
    pub(super) const fn time(&self) -> Seconds {
        self.since
    }
}

impl Supervisor {
    /// The same with this velocity error; `None` is [`VELOCITY_ERROR`] of the velocity limit.
    #[must_use]
    pub fn with_velocity_error(mut self, error: Option<RadiansPerSecond>) -> Self {
        self.velocity_error = error.unwrap_or(self.settings.limits.velocity * VELOCITY_ERROR);
        self
    }

    /// Speed, in rad/s, by which an axis has to be faster than at the request to its drive to
    /// brake.
    pub(super) fn runaway_margin(&self) -> f64 {
        self.velocity_error.0.max(self.settings.limits.velocity.0 * LEAST_MARGIN)
    }

    /// Watches for a runaway. True once the axis has run away from its command for
    /// [`RUNAWAY_TIME`].
    pub(super) fn watch_runaway(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
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
                // In csv the watch begins with the speed at the change of mode.
                self.runaway.explained = None;
                let torque = self.sent.torque.0;
                let pulls = torque.abs() > self.settings.limits.torque.0 * PULLS;
                let lowers = actual * torque < 0.0 && actual.abs() > error;
                let is_against = pulls && lowers && !self.means.keeps_torque;
                let from = self.runaway.from.unwrap_or(f64::INFINITY).min(actual.abs());
                self.runaway.from = is_against.then_some(from);
                is_against
            }
            _ => {
                let is_beyond =
                    actual > explained.1.max(0.0) + error || actual < explained.0.min(0.0) - error;
                // An axis that gets slower is braked, though less than commanded: it keeps its
                // torque.
                let noise = self.settings.limits.velocity.0 * STANDS;
                let slows = self.runaway.from.is_none_or(|from| actual.abs() < from - noise);
                if !is_beyond || slows {
                    self.runaway.since = Seconds::ZERO;
                    self.runaway.from = is_beyond.then_some(actual.abs());
                }
                is_beyond
            }
        };
        if !is_away {
            self.runaway.since = Seconds::ZERO;
            return false;
        }
        self.runaway.since += elapsed;
        // A load that is lowered by a torque keeps its speed; an axis that runs away gets faster.
        let gets_faster = self.runaway.from.is_some_and(|from| actual.abs() > from + error * FASTER);
        self.runaway.since >= RUNAWAY_TIME && (gets_faster || self.mode() == CyclicMode::Velocity)
    }
}

/// Time that a runaway lasts before the axis is stopped.
pub const RUNAWAY_TIME: Seconds = Seconds(0.05);

/// Default of the velocity error, as a share of the velocity limit.
pub const VELOCITY_ERROR: f64 = 0.25;

/// Share of the velocity limit that counts as faster while its drive brakes, at least.
const LEAST_MARGIN: f64 = 0.05;

/// Share of the velocity error by which an axis in cst gets faster against its torque.
const FASTER: f64 = 0.2;

/// Share of the torque limit from which a torque has a direction.
const PULLS: f64 = 0.01;
