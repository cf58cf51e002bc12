//! The end of the cycle, and requests that stop the axes: supervision stops an axis that its
//! controller does not stop.

use super::{CyclicMode, Ending, STANDS, Seen, Supervisor};
use crate::units::{RadiansPerSecond, Seconds};

impl Supervisor {
    /// Watches how the controller stops the axis at the end of the cycle. True if it does not.
    pub(super) fn watch_end(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
        if seen.ending == Ending::No {
            return false;
        }
        let now = self.motion(seen.feedback.velocity);
        let Ended { since, before, free_for, let_go_at } =
            self.ending.get_or_insert(Ended { before: now, let_go_at: now, ..Ended::default() });
        *since += elapsed;
        (*free_for, *let_go_at) = match self.sent.torque.0 == 0.0 {
            true => (*free_for + elapsed, *let_go_at),
            false => (Seconds::ZERO, now),
        };
        let (since, before, freely) =
            (*since, *before, *free_for >= FREE_TIME && now > COASTS * *let_go_at);
        let heeds = seen.braking || now <= SLOWED * before || since < HEED_TIME;
        // An axis that approaches standstill for ever counts as stopped.
        let moves = now > STANDS;
        let sent = self.sent.velocity.0 != 0.0 || self.sent.torque.0 != 0.0;
        let free = self.mode() == CyclicMode::Torque && !seen.braking && moves && {
            // A load falls, or an axis turns on that nothing brakes.
            now > before + STANDS || freely
        };
        ((sent || moves) && seen.ending == Ending::Hurried)
            || free
            || (moves && (!heeds || since >= END_TIME))
    }

    /// Speed of the axis as a share of its highest. In torque mode it is the actual speed: an axis
    /// may turn fast with hardly any torque, and a held axis takes torque at standstill.
    fn motion(&self, velocity: RadiansPerSecond) -> f64 {
        let velocity = match self.mode() {
            CyclicMode::Torque => velocity,
            _ => self.sent.velocity,
        };
        velocity.0.abs() / self.settings.limits.velocity.0
    }
}

/// The end of the cycle so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// Time since the end was requested.
    since: Seconds,
    /// Share of the highest speed that the axis had then.
    before: f64,
    /// Time without torque.
    free_for: Seconds,
    /// Share of the highest speed that it had with its last torque.
    let_go_at: f64,
}

/// Share of its speed that an axis without torque still has after [`FREE_TIME`] if nothing brakes
/// it.
const COASTS: f64 = 0.98;

/// Time after which an axis in torque mode that gets no torque any more has slowed down, or is
/// braked.
pub const FREE_TIME: Seconds = Seconds(0.1);

/// Time after the request to end the cycle within which a controller has to slow its axes down.
pub const HEED_TIME: Seconds = Seconds(1.0);

/// Share of its speed that an axis has at most once it is slowed down.
const SLOWED: f64 = 0.75;

/// Time within which a controller has to stop its axes.
pub const END_TIME: Seconds = Seconds(5.0);
