//! The end of the cycle: a controller that does not bring its axis to rest loses it.

use super::{Mode, STANDS, Supervisor};
use crate::units::Seconds;

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
    pub(super) fn ignores_the_end(&mut self, elapsed: Seconds, ending: Ending) -> bool {
        if ending == Ending::No {
            self.ending = None;
            return false;
        }
        let (since, before) = self.ending.get_or_insert((Seconds::ZERO, self.sent));
        *since += elapsed;
        let limits = &self.settings.limits;
        let (now, before, highest) = match self.settings.mode {
            Mode::Torque => (self.sent.torque.0, before.torque.0, limits.torque.0),
            _ => (self.sent.velocity.0, before.velocity.0, limits.velocity.0),
        };
        let heeds = now.abs() <= SLOWED * before.abs() || *since < HEED_TIME;
        // Who approaches rest for ever is as good as there.
        let moves = now.abs() > STANDS * highest;
        (now != 0.0 && ending == Ending::Hurried) || (moves && (!heeds || *since >= END_TIME))
    }
}

/// Time after the cycle's end was asked for within which a controller has to slow its axes down.
pub const HEED_TIME: Seconds = Seconds(1.0);

/// Share of its speed that an axis has at most once it is slowed down.
const SLOWED: f64 = 0.75;

/// Time within which a controller has to bring its axes to rest.
pub const END_TIME: Seconds = Seconds(5.0);
