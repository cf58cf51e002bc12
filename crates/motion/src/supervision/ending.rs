//! The end of the cycle: a controller that does not bring its axis to rest loses it.

use super::{Mode, STANDS, Seen, Supervisor};
use crate::units::{RadiansPerSecond, Seconds};

/// True if the cycle ends, and how long its controller may take to bring the axis to rest by its own profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// It goes on.
    #[default]
    No,
    /// A controller that has not slowed the axis down within [`HEED_TIME`], or not brought it to rest within [`END_TIME`], loses it.
    Asked,
    /// Supervision brakes at once.
    Hurried,
}

impl Supervisor {
    /// True if the cycle ends and the controller does not bring the axis to rest.
    pub(super) fn ignores_the_end(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
        if seen.ending == Ending::No {
            self.ending = None;
            return false;
        }
        let now = self.motion(seen.feedback.velocity);
        let (since, before) = self.ending.get_or_insert((Seconds::ZERO, now));
        *since += elapsed;
        let heeds = now <= SLOWED * *before || *since < HEED_TIME;
        // Who approaches rest for ever is as good as there.
        let moves = now > STANDS;
        let sent = self.sent.velocity.0 != 0.0 || self.sent.torque.0 != 0.0;
        ((sent || moves) && seen.ending == Ending::Hurried) || (moves && (!heeds || *since >= END_TIME))
    }

    /// How much the axis moves, as a share of the most it may; one in torque mode may turn fast with hardly any torque.
    fn motion(&self, velocity: RadiansPerSecond) -> f64 {
        let limits = &self.settings.limits;
        let share = |velocity: RadiansPerSecond| velocity.0.abs() / limits.velocity.0;
        match self.settings.mode {
            Mode::Torque => (self.sent.torque.0.abs() / limits.torque.0).max(share(velocity)),
            _ => share(self.sent.velocity),
        }
    }
}

/// Time after the cycle's end was asked for within which a controller has to slow its axes down.
pub const HEED_TIME: Seconds = Seconds(1.0);

/// Share of its speed that an axis has at most once it is slowed down.
const SLOWED: f64 = 0.75;

/// Time within which a controller has to bring its axes to rest.
pub const END_TIME: Seconds = Seconds(5.0);
