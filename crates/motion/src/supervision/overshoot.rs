//! Way beyond the position limits of an axis in a mode of torques: its drive brakes it, and no
//! set-point holds it.

use super::{CyclicMode, STANDS, Seen, Supervisor};
use crate::units::Radians;

/// An axis beyond its position limits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overshoot {
    /// Farthest way beyond them since it passed one; 0 within them.
    farthest: f64,
    /// It has stopped since, or turned back.
    ended: bool,
}

impl Supervisor {
    /// Farthest distance beyond a position limit, once the axis has stopped there or is back, until
    /// it passes a limit again. Only in modes of torques.
    #[must_use]
    pub fn overshoot(&self) -> Option<Radians> {
        (self.overshoot.ended && self.overshoot.farthest > 0.0).then_some(Radians(self.overshoot.farthest))
    }

    /// True if it passed a position limit in a mode of torques, and is not well within them again.
    pub(super) fn overshoots(&self) -> bool {
        self.overshoot.farthest > 0.0
    }

    /// Looks how far the axis is beyond a limit. An axis without torque that a person moves does
    /// not overshoot.
    pub(super) fn watch_overshoot(&mut self, seen: &Seen) {
        let Some((lowest, highest)) = self.settings.limits.position else { return };
        let feedback = &seen.feedback;
        if self.mode() != CyclicMode::Torque || !feedback.fresh {
            return;
        }
        let (position, velocity) = (feedback.position.0, feedback.velocity.0);
        let way = (lowest.0 - position).max(position - highest.0);
        let outwards = if position > highest.0 { velocity } else { -velocity };
        let rests = outwards <= (self.settings.limits.velocity * STANDS).0;
        match (way > 0.0, self.overshoot) {
            // The next time begins once it is well within them: noise at a limit is one overshoot.
            (false, Overshoot { ended: true, .. }) if -way > self.settings.limits.step.0 => {
                self.overshoot = Overshoot::default();
            }
            (false, _) => self.overshoot.ended |= self.overshoot.farthest > 0.0,
            // A person has moved it there.
            (true, Overshoot { farthest: 0.0, .. }) if !seen.enabled => self.overshoot.ended = true,
            (true, Overshoot { ended: false, farthest }) => {
                self.overshoot = Overshoot { farthest: farthest.max(way), ended: rests };
            }
            (true, Overshoot { ended: true, .. }) => {}
        }
    }
}
