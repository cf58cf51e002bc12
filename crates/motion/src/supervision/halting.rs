//! Halts: an axis that its drive's halt does not slow gets a quick stop.
//!
//! A halt brakes only if 0x605D selects it, and if the drive obeys bit 8 of the controlword. If it
//! is known not to brake, the drive's quick stop is used. Otherwise the axis has to slow down
//! within [`ANSWER`], until it has been at standstill once. If it gets faster, a motor with
//! exchanged phases drives it: it runs away.

use super::{
    ANSWER, ANSWER_CYCLES, BLIND_CYCLES, Braking, Hold, Intervention, RUNAWAY_TIME, STANDS, Seen,
    Supervisor,
};
use crate::units::Seconds;
use types::CyclicMode;
use types::state::StopReason;

/// One halt, from its request on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Halting {
    /// Speed at the request.
    pub(super) before: f64,
    /// Time for which it has been faster than at the request, without slowing down.
    faster: Seconds,
    /// Highest speed since it slowed down last.
    highest: f64,
    /// Time without slowing down.
    stuck: Seconds,
    /// It has been at standstill.
    rested: bool,
    /// It did not slow down: its drive gets a quick stop.
    pub(super) ignored: bool,
}

impl Supervisor {
    /// Braking by the drive itself, in modes in which no set-point does it.
    pub(super) fn halt(&self, reason: StopReason) -> Braking {
        let limit = self.settings.limits.velocity;
        let stands = self.believed.is_none_or(|it| it.abs() <= limit * STANDS);
        match self.means.halts {
            true => Braking::Drive(Intervention::Halt),
            // It only waits, enabled: without velocity or torque.
            false if stands && is_enabled_meanwhile(reason) => Braking::Hard,
            false => Braking::Drive(Intervention::QuickStop),
        }
    }

    /// True in modes in which no set-point stops the axis, but its drive's halt.
    pub(super) fn stops_by_halt(&self) -> bool {
        self.mode() == CyclicMode::Torque || self.drive_makes_the_way()
    }

    /// Watches whether a halt slows the axis.
    pub(super) fn watch_halt(&mut self, elapsed: Seconds, seen: &Seen) {
        let limit = self.settings.limits.velocity.0;
        let speed = seen.feedback.velocity.0.abs();
        let knows = seen.feedback.fresh && speed.is_finite();
        let homes = seen.homing
            && self
                .stopped()
                .is_some_and(|it| !it.lets_home() || seen.set_up || seen.missed > BLIND_CYCLES);
        let drifts = matches!(self.hold, Hold::Stopped { braking: Braking::Hard, .. })
            && self.stops_by_halt()
            && seen.enabled
            && knows
            && speed > limit * STANDS;
        if !self.means.halts && (homes || drifts) {
            return self.stop_quickly();
        }
        let by_controller = seen.braking && !seen.quick_stop;
        let is_halted = match self.hold {
            Hold::Stopped { braking: Braking::Drive(it), .. } => it == Intervention::Halt,
            _ => by_controller || homes,
        };
        let ignored = self.halting.is_some_and(|it| it.ignored);
        if !is_halted {
            self.halting = None;
        } else if seen.missed > BLIND_CYCLES {
            self.halting = self.halting.filter(|_| ignored);
        } else if self.quick_stop.is_none() && !ignored && seen.has_power.is_none_or(|_| seen.enabled) {
            if !(knows && seen.enabled) {
                return;
            }
            let (least, margin) = (self.least_slowing(), self.runaway_margin());
            let halting =
                self.halting.get_or_insert(Halting { before: speed, highest: speed, ..Halting::default() });
            halting.rested |= speed <= limit * STANDS;
            if speed < halting.highest - least {
                (halting.highest, halting.stuck, halting.faster) = (speed, Seconds::ZERO, Seconds::ZERO);
            } else {
                halting.highest = halting.highest.max(speed);
                halting.stuck += elapsed;
            }
            // The load of an axis without a brake may pull it: without torque it would fall.
            let is_faster = speed > halting.before + margin && !self.means.keeps_torque;
            // After a late cycle one reply does not count for all the time.
            let counted = Seconds(elapsed.0.min(self.period.0));
            halting.faster = if is_faster { halting.faster + counted } else { Seconds::ZERO };
            if halting.faster >= RUNAWAY_TIME {
                return self.stop(StopReason::Runaway, None);
            }
            let answers = ANSWER + self.period * ANSWER_CYCLES;
            halting.ignored = !halting.rested && halting.stuck >= answers;
            if halting.ignored {
                self.stop_quickly();
            }
        }
    }

    /// Least difference of speeds, in rad/s, by which an axis slows down.
    pub(super) fn least_slowing(&self) -> f64 {
        let limits = &self.settings.limits;
        (limits.velocity.0 * STANDS).min(limits.deceleration.0 * ANSWER.0 / 2.0)
    }

    /// The drive's quick stop continues a stop.
    fn stop_quickly(&mut self) {
        if let Hold::Stopped { braking, .. } = &mut self.hold
            && !matches!(braking, Braking::Drive(Intervention::Disable | Intervention::CutOff))
        {
            *braking = Braking::Drive(Intervention::QuickStop);
        }
    }

    /// Request that holds the axis while its brake closes.
    #[must_use]
    pub fn holds_by(&self) -> Intervention {
        let steps = self.is_stopped_by_steps();
        match self.means.halts {
            _ if steps && self.leads_to_rest() => Intervention::Follow,
            true => Intervention::Halt,
            // Its velocity 0.
            false if self.mode() == CyclicMode::Velocity || self.leads_to_rest() => Intervention::Follow,
            false if self.means.quick_stops && !steps => Intervention::QuickStop,
            false => Intervention::Halt,
        }
    }
}

/// True of a stop in which an axis at standstill stays enabled, though no controller may move it.
#[must_use]
pub const fn is_enabled_meanwhile(reason: StopReason) -> bool {
    let homes = reason.lets_home() && !matches!(reason, StopReason::Stale | StopReason::Jog);
    homes || matches!(reason, StopReason::SetUp | StopReason::AfterSetUp)
}
