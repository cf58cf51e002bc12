//! Profile position and profile velocity: the drive makes the motion, supervision evaluates its
//! feedback.
//!
//! Profile torque is cyclic torque with a slope: nothing else is known of the motion of either.

use super::braking::TORQUE_RAMP;
use super::{Limits, ROUNDING, STANDS, Seen, StopReason, Supervisor, at_wall};
use crate::AxisScale;
use crate::axis::{AxisFeedback, AxisPhase, AxisSetpoint};
use crate::units::{NewtonMetres, Radians, Seconds};
use types::CyclicMode;

/// Speed and ramps by which a drive makes its own way, in its numbers: never beyond the limits of
/// its axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveProfile {
    /// 0x6081, counts per second.
    pub velocity: u32,
    /// 0x6083 and 0x6084, counts per second squared.
    pub acceleration: u32,
    /// 0x6087, 0.1 % of the rated torque per second.
    pub torque_slope: u32,
}

impl DriveProfile {
    /// The profile of an axis with these limits: the highest speed they allow, and supervision's
    /// deceleration.
    #[must_use]
    pub fn within(limits: &Limits, scale: &AxisScale) -> Self {
        let counts = |radians: f64| ((radians * scale.counts_per_radian()).abs().floor() as u32).max(1);
        let unit = scale.torque(1).0.abs();
        Self {
            velocity: counts(limits.velocity.0),
            acceleration: counts(limits.acceleration.0),
            torque_slope: ((limits.torque.0 / unit / TORQUE_RAMP.0).floor() as u32).max(1),
        }
    }
}

impl Supervisor {
    /// True if the drive makes the motion between two set-points by itself.
    pub(super) fn drive_makes_the_way(&self) -> bool {
        self.settings.mode.is_profile() && self.mode() != CyclicMode::Torque
    }

    /// Fault of the controller's command, or of the axis as the drive reports it.
    pub(super) fn trouble_on_its_way(
        &mut self,
        elapsed: Seconds,
        asked: AxisSetpoint,
        seen: &Seen,
    ) -> Option<StopReason> {
        let (limits, feedback) = (self.settings.limits, seen.feedback);
        // A way begins where the axis is held: a destination of before a stop would move it by
        // itself.
        let begins = matches!(feedback.phase, AxisPhase::HoldingAt(_));
        let away = (asked.position - self.sent.position).abs();
        let too_fast = feedback.velocity.abs() > limits.velocity * OVERSHOOT;
        let is_fast = match self.mode() {
            CyclicMode::Velocity => asked.velocity.abs() > limits.velocity * super::TOLERANCE,
            CyclicMode::Position | CyclicMode::Torque => false,
        };
        if self.mode() == CyclicMode::Position && begins && away > limits.step + ROUNDING {
            Some(StopReason::Step)
        } else if too_fast || is_fast {
            Some(StopReason::VelocityLimit)
        } else if self.runs_out(&feedback) {
            Some(StopReason::PositionLimit)
        } else if self.mode() == CyclicMode::Position && self.lags(elapsed, seen) {
            Some(StopReason::FollowingError)
        } else {
            None
        }
    }

    /// True if an axis is so fast towards a position limit that its deceleration does not stop it
    /// there.
    fn runs_out(&self, feedback: &AxisFeedback) -> bool {
        let limits = self.settings.limits;
        let slack = limits.velocity * SLACK;
        let bounds = limits.position.map(|(lowest, highest)| {
            (Radians(lowest.0.min(feedback.position.0)), Radians(highest.0.max(feedback.position.0)))
        });
        let allowed =
            at_wall(feedback.velocity, feedback.position, bounds, limits.deceleration, Seconds::ZERO);
        (feedback.velocity - allowed).abs() > slack
    }

    /// Destination within the position limits; true as [`StopReason::PositionLimit`] where they
    /// hold it back.
    pub(super) fn send_destination(
        &mut self,
        asked: AxisSetpoint,
        feedback: &AxisFeedback,
    ) -> Option<StopReason> {
        let position = self.settings.limits.position.map_or(asked.position, |(lowest, highest)| {
            Radians(asked.position.0.clamp(lowest.0, highest.0))
        });
        // Outside the limits it may stay, unless the target is farther out.
        let stays = feedback.velocity.abs() <= self.settings.limits.velocity * STANDS
            && (asked.position - feedback.position).abs() <= self.settings.limits.step;
        let position = if stays { asked.position } else { position };
        self.sent = AxisSetpoint { position, velocity: feedback.velocity, torque: NewtonMetres::ZERO };
        (position != asked.position).then_some(StopReason::PositionLimit)
    }
}

/// Share of the velocity limit up to which a drive overshoots its profile.
const OVERSHOOT: f64 = 1.1;

/// Share of the velocity limit by which an axis may exceed the speed from which its deceleration
/// stops it before a limit. A drive brakes along that very curve, and its feedback is late.
const SLACK: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::super::{AfterOutage, Intervention, OnStale, Outage, Settings};
    use super::*;
    use crate::units::{RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared};
    use types::AxisMode;

    const PERIOD: Seconds = Seconds(0.001);

    fn supervisor(mode: AxisMode) -> Supervisor {
        let limits = Limits {
            position: Some((Radians(-1.0), Radians(1.0))),
            velocity: RadiansPerSecond(2.0),
            acceleration: RadiansPerSecondSquared(8.0),
            deceleration: RadiansPerSecondSquared(8.0),
            jerk: RadiansPerSecondCubed(100.0),
            torque: NewtonMetres(1.0),
            step: Radians(0.01),
            written: crate::supervision::Written::default(),
        };
        let outage = Outage { time: None, after: AfterOutage::Resume };
        let settings = Settings { mode, limits, following_error: None, on_stale: OnStale::Ramp, outage };
        Supervisor::new(settings, PERIOD).unwrap()
    }

    fn seen(position: f64, velocity: f64, phase: AxisPhase) -> Seen {
        let feedback = AxisFeedback {
            position: Radians(position),
            velocity: RadiansPerSecond(velocity),
            phase,
            fresh: true,
            ..AxisFeedback::default()
        };
        Seen { feedback, ..Seen::default() }
    }

    fn to(position: f64) -> AxisSetpoint {
        AxisSetpoint { position: Radians(position), ..AxisSetpoint::default() }
    }

    /// Held at 0, then followed.
    fn following(mode: AxisMode) -> Supervisor {
        let mut it = supervisor(mode);
        let held = seen(0.0, 0.0, AxisPhase::HoldingAt(Radians(0.0)));
        assert_eq!(it.step(PERIOD, to(0.0), &held).reason, None);
        it
    }

    #[test]
    fn a_destination_may_lie_far_away_and_is_held_within_the_limits() {
        let mut it = following(AxisMode::ProfilePosition);
        let on_its_way = seen(0.1, 1.9, AxisPhase::Following);
        let sent = it.step(PERIOD, to(0.9), &on_its_way);
        assert_eq!((sent.setpoint.position, sent.reason, sent.intervention), (Radians(0.9), None, None));
        let sent = it.step(PERIOD, to(7.0), &on_its_way);
        let expected = (Radians(1.0), Some(StopReason::PositionLimit), None);
        assert_eq!((sent.setpoint.position, sent.reason, sent.intervention), expected);
    }

    #[test]
    fn a_way_begins_where_the_axis_is_held() {
        let mut it = supervisor(AxisMode::ProfilePosition);
        let held = seen(0.0, 0.0, AxisPhase::HoldingAt(Radians(0.0)));
        let sent = it.step(PERIOD, to(0.5), &held);
        assert_eq!((sent.reason, sent.intervention), (Some(StopReason::Step), Some(Intervention::Halt)));
    }

    #[test]
    fn a_velocity_beyond_its_limit_halts_it() {
        for (velocity, reason) in [(2.09, None), (-2.11, Some(StopReason::VelocityLimit))] {
            let mut it = following(AxisMode::ProfileVelocity);
            let asked = AxisSetpoint { velocity: RadiansPerSecond(velocity), ..to(0.0) };
            let sent = it.step(PERIOD, asked, &seen(0.0, 0.0, AxisPhase::Following));
            assert_eq!(sent.reason.filter(|it| it.is_latched()), reason, "{velocity}");
            assert!(sent.setpoint.velocity.abs().0 <= 2.0, "{velocity}: {sent:?}");
        }
    }

    #[test]
    fn what_the_drive_reports_beyond_the_limits_halts_it() {
        for mode in [AxisMode::ProfilePosition, AxisMode::ProfileVelocity] {
            let cases = [
                (0.0, 2.1, None),
                (0.0, -2.3, Some(StopReason::VelocityLimit)),
                // From 0.9 it could stop from 1.26 rad/s.
                (0.9, 1.3, None),
                (0.9, 1.6, Some(StopReason::PositionLimit)),
                (0.9, -1.6, None),
                (1.1, 0.3, Some(StopReason::PositionLimit)),
                (1.1, -0.3, None),
            ];
            for (position, velocity, reason) in cases {
                let sent =
                    following(mode).step(PERIOD, to(0.0), &seen(position, velocity, AxisPhase::Following));
                assert_eq!(
                    sent.reason.filter(|it| it.is_latched()),
                    reason,
                    "{mode:?} {position} {velocity}"
                );
                assert_eq!(
                    sent.intervention,
                    reason.map(|_| Intervention::Halt),
                    "{mode:?} {position} {velocity}"
                );
            }
        }
    }

    #[test]
    fn silent_axis_is_halted_after_two_cycles_then_quick_stopped() {
        for mode in [AxisMode::ProfilePosition, AxisMode::ProfileVelocity] {
            let mut it = following(mode);
            let mut seen = seen(0.0, 1.0, AxisPhase::Following);
            seen.feedback.fresh = false;
            let mut interventions = Vec::new();
            for missed in 1..30 {
                seen.missed = missed;
                interventions.push(it.step(PERIOD, to(0.0), &seen).intervention);
            }
            let first = |wanted| interventions.iter().position(|it| *it == Some(wanted)).map(|at| at + 1);
            assert_eq!(first(Intervention::Halt), Some(3), "{mode:?} {interventions:?}");
            assert_eq!(first(Intervention::QuickStop), Some(21), "{mode:?} {interventions:?}");
            assert!(interventions[2..].iter().all(Option::is_some), "{mode:?} {interventions:?}");
        }
    }

    #[test]
    fn a_stale_command_halts_it_until_it_rests() {
        let mut it = following(AxisMode::ProfilePosition);
        let mut moving = seen(0.0, 1.0, AxisPhase::Following);
        moving.stale = Some(Seconds::ZERO);
        let sent = it.step(PERIOD, to(0.9), &moving);
        assert_eq!((sent.reason, sent.intervention), (Some(StopReason::Stale), Some(Intervention::Halt)));
        moving.stale = None;
        assert_eq!(it.step(PERIOD, to(0.9), &moving).intervention, Some(Intervention::Halt), "it moves");
        let held = seen(0.1, 0.0, AxisPhase::HoldingAt(Radians(0.1)));
        let sent = it.step(PERIOD, to(0.1), &held);
        assert_eq!((sent.reason, sent.intervention, sent.setpoint.position), (None, None, Radians(0.1)));
    }
}
