//! Braking of an axis that supervision has stopped.

use core::mem;

use super::{Hold, Intervention, Runaway, STANDS, StopReason, Supervisor};
use crate::axis::{AxisFeedback, AxisPhase, TrajectoryPoint};
use crate::stop::StopProfile;
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, Seconds};
use types::{CyclicMode, OnStale};

/// Way in which a stopped axis brakes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Braking {
    /// At the deceleration limit.
    Hard,
    /// From these numbers smoothly to zero.
    Ramp { velocity: RadiansPerSecond, torque: NewtonMetres, elapsed: Seconds, duration: Seconds },
    /// The drive does it.
    Drive(Intervention),
    /// Outage: positions stand, others fall to zero. The velocity it had when that began.
    Blind { velocity: RadiansPerSecond },
    /// Return: from its position to standstill, along [`Supervisor::way_back`]. It `begins` with
    /// the next set-point.
    Return { begins: bool },
    /// A jog moves it: along [`Supervisor::jog`].
    Jog,
}

impl Supervisor {
    /// Time from the last set-point to standstill when the axis ramps to zero; 0 if it does not
    /// ramp.
    #[must_use]
    pub fn ramp_time(&self) -> Seconds {
        match (self.settings.on_stale, self.mode()) {
            (OnStale::Ramp, CyclicMode::Torque) => TORQUE_RAMP,
            (OnStale::Ramp, _) => {
                let profile =
                    StopProfile::new(Radians::ZERO, self.sent.velocity, self.settings.limits.deceleration);
                profile.map_or(Seconds::ZERO, |profile| profile.duration())
            }
            _ => Seconds::ZERO,
        }
    }

    /// Time braking at its deceleration takes from what the axis was last sent.
    #[must_use]
    pub fn braking_time(&self) -> Seconds {
        Seconds(self.sent.velocity.0.abs() / self.settings.limits.deceleration.0)
    }

    pub(super) fn stop(&mut self, reason: StopReason, ramp: Option<Seconds>) {
        let braking = match (reason, self.settings.on_stale) {
            (StopReason::Fault, _) | (StopReason::Stale, OnStale::Disable) => {
                Braking::Drive(Intervention::Disable)
            }
            (StopReason::Runaway, _) => Braking::Drive(Intervention::CutOff),
            (StopReason::FollowingError | StopReason::HomingError | StopReason::HomingTimedOut, _)
            | (StopReason::Stale, OnStale::QuickStop) => Braking::Drive(Intervention::QuickStop),
            (StopReason::Stale, OnStale::Ramp) if !self.drive_makes_the_way() => Braking::Ramp {
                velocity: self.sent.velocity,
                torque: self.sent.torque,
                elapsed: Seconds::ZERO,
                duration: Seconds(ramp.map_or(0.0, |ramp| ramp.0).max(self.ramp_time().0)),
            },
            _ if self.stops_by_halt() => self.halt(reason),
            _ => Braking::Hard,
        };
        self.hold = Hold::Stopped { reason, braking };
        self.runaway = Runaway::default();
        // An acknowledgement applies to past stops, not to later ones.
        self.acknowledged = false;
        self.asked = None;
    }

    /// Command a stopped axis is sent.
    pub(super) fn brake(&mut self, elapsed: Seconds, feedback: &AxisFeedback) {
        let Hold::Stopped { braking, .. } = &mut self.hold else { return };
        let (velocity, torque) = match braking {
            Braking::Hard => (self.braked(elapsed), NewtonMetres::ZERO),
            Braking::Ramp { velocity, torque, elapsed: since, duration } => {
                *since += elapsed;
                let share = share_left(*since, *duration);
                (*velocity * share, *torque * share)
            }
            // The drive takes no set-points.
            Braking::Drive(_) | Braking::Jog => (RadiansPerSecond::ZERO, NewtonMetres::ZERO),
            Braking::Blind { .. } => return self.stand_or_fall(),
            Braking::Return { begins } => {
                let begins = mem::take(begins);
                let point = self.next_on_way_back(begins);
                if self.mode() == CyclicMode::Position {
                    return self.return_to(point, begins);
                }
                (point.velocity, NewtonMetres::ZERO)
            }
        };
        // The wall is as hard for an axis that is stopped.
        let velocity = match self.mode() {
            CyclicMode::Velocity => self.slowed_for_stop(velocity, feedback.position, elapsed),
            CyclicMode::Position | CyclicMode::Torque => velocity,
        };
        self.move_on(velocity, torque, self.sent.position, elapsed);
    }

    /// A ramp and a way back count from their start: they do not continue after other set-points.
    pub(super) fn leave_planned_braking(&mut self) {
        let Some(reason) = self.stopped() else { return };
        let planned = if self.stops_by_halt() { self.halt(reason) } else { Braking::Hard };
        if let Hold::Stopped { braking, .. } = &mut self.hold {
            let has_set_points = matches!(
                braking,
                Braking::Hard | Braking::Ramp { .. } | Braking::Return { .. } | Braking::Jog
            );
            if has_set_points {
                *braking = planned;
            }
        }
    }

    /// Velocity sent last, braked at the deceleration limit.
    pub(super) fn braked(&self, elapsed: Seconds) -> RadiansPerSecond {
        let (sent, deceleration) = (self.sent.velocity.0, self.settings.limits.deceleration.0);
        RadiansPerSecond(sent.signum() * (sent.abs() - deceleration * elapsed.0).max(0.0))
    }

    /// Next point of the way back to standstill; the first point where it `begins`.
    pub(super) fn next_on_way_back(&mut self, begins: bool) -> TrajectoryPoint {
        // After a host stall the drive takes one step all the same.
        let passed = if begins { Seconds::ZERO } else { self.period };
        self.way_back.advance(passed)[0]
    }

    pub(super) fn intervention(&self) -> Option<Intervention> {
        match self.hold {
            Hold::Stopped { braking: Braking::Drive(intervention), .. } => Some(intervention),
            _ => None,
        }
    }

    /// True if a stopped axis is at standstill.
    pub(super) fn rests(&self, feedback: &AxisFeedback) -> bool {
        let Hold::Stopped { braking, .. } = self.hold else { return true };
        let standing = feedback.velocity.abs() <= self.settings.limits.velocity * STANDS;
        match braking {
            Braking::Drive(Intervention::QuickStop) if self.is_held_enabled() => standing,
            // Not enabled while the drive brakes by itself, and once it has.
            Braking::Drive(Intervention::QuickStop) if feedback.phase == AxisPhase::NotEnabled => standing,
            _ if feedback.phase == AxisPhase::NotEnabled => true,
            Braking::Hard => self.sent.velocity == RadiansPerSecond::ZERO,
            Braking::Ramp { elapsed, duration, .. } => elapsed >= duration,
            Braking::Drive(Intervention::Halt) => standing,
            Braking::Drive(_) | Braking::Blind { .. } | Braking::Jog => false,
            Braking::Return { .. } => {
                self.way_back.arrived() && self.sent.velocity == RadiansPerSecond::ZERO
            }
        }
    }
}

/// Part left of a velocity `elapsed` into a ramp, from 1 to 0: as [`StopProfile`] does it.
fn share_left(elapsed: Seconds, duration: Seconds) -> f64 {
    if elapsed >= duration {
        return 0.0;
    }
    let u = (elapsed / duration).max(0.0);
    1.0 - u * u * (3.0 - 2.0 * u)
}

/// From full torque to none.
pub(super) const TORQUE_RAMP: Seconds = Seconds(0.25);
