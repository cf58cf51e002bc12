//! Torque limit in the drive during a jog and in set-up mode, where the cycle can set it.
//!
//! The limit is low from standstill on: an axis that moves at full speed brakes with its full
//! torque. It is not lowered below the torque that the axis needs at standstill, or its load would
//! fall. The watch over the torque of a jog then stops the axis.

use super::{NewtonMetres, STANDS, Seconds, Seen, StopReason, Supervisor};
use crate::axis::AxisPhase;

/// Torque limit of the drive of one axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct DriveTorque {
    /// Limit of a jog, as the drive takes it.
    limit: NewtonMetres,
    /// Time at standstill, enabled, with a torque that fits into the limit.
    settled: Seconds,
    is_low: bool,
}

impl Supervisor {
    /// The same for an axis with a torque limit that the cycle sets in its drive: `limit` during a
    /// jog and in set-up mode.
    #[must_use]
    pub fn with_drive_torque(mut self, limit: NewtonMetres) -> Self {
        self.drive_torque = Some(DriveTorque { limit, settled: Seconds::ZERO, is_low: false });
        self
    }

    /// True if the drive gets the jog's torque limit in this cycle; between [`Self::judge`] and
    /// [`Self::send`], and after both.
    #[must_use]
    pub fn has_low_torque(&self) -> bool {
        self.drive_torque.is_some_and(|it| it.is_low)
    }

    /// Lowers the limit, or raises it.
    pub(super) fn step_drive_torque(&mut self, elapsed: Seconds, seen: &Seen) {
        let by_jog = self.is_jogged() || self.stopped() == Some(StopReason::JogTorque);
        let Some(mut drive) = self.drive_torque else { return };
        let feedback = &seen.feedback;
        let follows = feedback.phase == AxisPhase::Following && !seen.homing;
        let stands = self.sent.velocity.0 == 0.0
            && feedback.velocity.abs() <= self.settings.limits.velocity * STANDS;
        let fits = feedback.torque.abs() <= drive.limit * HELD;
        let settles = follows && stands && fits && feedback.fresh;
        // A reply that is missing says nothing of the load.
        drive.settled = match settles {
            true => drive.settled + elapsed,
            false if feedback.fresh => Seconds::ZERO,
            false => drive.settled,
        };
        let begins = settles && drive.settled >= SETTLED && (self.is_jogged() || seen.set_up);
        drive.is_low = (by_jog || seen.set_up) && follows && (drive.is_low || begins);
        self.drive_torque = Some(drive);
    }

    /// True while a jog waits at standstill for the limit in the drive.
    pub(super) fn waits_for_drive_torque(&self) -> bool {
        let stands = self.sent.velocity.0 == 0.0;
        self.drive_torque.is_some_and(|it| stands && !it.is_low && it.settled.0 > 0.0)
    }

    /// Torque from which a jog presses against something: a drive that has the limit gives no more.
    pub(super) fn presses(&self, torque: NewtonMetres) -> bool {
        match self.drive_torque {
            Some(it) if it.is_low => torque.abs() >= it.limit * REACHED,
            _ => torque.abs() > self.jogging.limits.torque,
        }
    }
}

/// Time at standstill after which the torque of the axis is the torque of its load.
const SETTLED: Seconds = Seconds(0.1);

/// Share of the limit that a load may need at standstill.
const HELD: f64 = 0.9;

/// Share of the limit from which a drive is at it: a torque may be rounded.
const REACHED: f64 = 0.995;
