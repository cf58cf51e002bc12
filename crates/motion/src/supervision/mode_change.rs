//! Another mode: between cyclic modes while the axis moves, else at standstill.

use super::{Hold, Supervisor};
use crate::axis::{AxisFeedback, AxisSetpoint};
use crate::units::{Radians, Seconds};
use types::{AxisMode, CyclicMode};

impl Supervisor {
    /// From now on set-points are of another mode. Until [`Self::settle_mode`] it is not known in
    /// which of the two the drive works: set-points of the old mode continue. From and to a profile
    /// mode the axis has to be at standstill, as under a stop by supervision: set-points begin at
    /// its position.
    pub fn change_mode(&mut self, mode: impl Into<AxisMode>, feedback: &AxisFeedback) {
        let mode = mode.into();
        let is_profile = mode.is_profile() || self.settings.mode.is_profile();
        let before = self.mode();
        self.settings.mode = mode;
        let mode = mode.cyclic();
        if let Some(stop) = &mut self.quick_stop {
            stop.forget_way_back();
        }
        if is_profile || self.hold != Hold::Free {
            return self.begin_at_rest(feedback);
        }
        if before == mode {
            return;
        }
        let goes_back = self.before.replace(before) == Some(mode);
        if before != CyclicMode::Position && !goes_back {
            // No position was followed: set-points begin where the axis is.
            self.sent.position = feedback.position;
        }
        let velocity = self.velocity_of(before, feedback);
        self.begin_course(velocity);
        self.asked = None;
    }

    fn begin_at_rest(&mut self, feedback: &AxisFeedback) {
        (self.before, self.asked) = (None, None);
        self.sent = AxisSetpoint { position: feedback.position, ..AxisSetpoint::default() };
        self.begin_course(crate::units::RadiansPerSecond::ZERO);
        // Without set-points that hold it, a drive holds the axis by a halt.
        self.leave_planned_braking();
    }

    /// The drive works in the mode that was requested last.
    pub const fn settle_mode(&mut self) {
        self.before = None;
    }

    /// Continues the quantity of the old mode from the set-point `last` sent.
    pub(super) fn carry_on(&mut self, last: AxisSetpoint, elapsed: Seconds) {
        let Some(before) = self.before.filter(|_| self.hold == Hold::Free) else { return };
        match (before, self.mode()) {
            // Positions have their velocity, and a stop drops torques.
            (CyclicMode::Position, now) => {
                let velocity = if now == CyclicMode::Velocity { self.sent.velocity } else { last.velocity };
                let step = self.settings.limits.step.0;
                let moved = (velocity * elapsed).0.clamp(-step, step);
                let position = (last.position + Radians(moved)).0;
                let position = self.settings.limits.position.map_or(position, |(lowest, highest)| {
                    position.clamp(lowest.0.min(last.position.0), highest.0.max(last.position.0))
                });
                self.sent.position = Radians(position);
            }
            (CyclicMode::Velocity, CyclicMode::Torque) => self.sent.velocity = last.velocity,
            (CyclicMode::Velocity, _) => {}
            (CyclicMode::Torque, _) => self.sent.torque = last.torque,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, OnStale, Outage, Seen, Settings};
    use super::*;
    use crate::axis::AxisPhase;
    use crate::units::{NewtonMetres, RadiansPerSecond, RadiansPerSecondCubed, RadiansPerSecondSquared};

    const PERIOD: Seconds = Seconds(0.001);

    /// One at 0.5 rad that was sent 1 rad/s, 1 N m.
    fn supervisor(mode: CyclicMode) -> Supervisor {
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
        let outage = Outage::default();
        let mode = mode.into();
        let settings = Settings { mode, limits, following_error: None, on_stale: OnStale::Hold, outage };
        let mut it = Supervisor::new(settings, PERIOD).unwrap();
        let mut held = seen(0.5);
        held.feedback.phase = AxisPhase::HoldingAt(Radians(0.5));
        it.step(PERIOD, setpoint(0.5), &held);
        it.step(PERIOD, setpoint(0.501), &seen(0.5));
        it
    }

    fn setpoint(position: f64) -> AxisSetpoint {
        AxisSetpoint {
            position: Radians(position),
            velocity: RadiansPerSecond(1.0),
            torque: NewtonMetres(0.5),
        }
    }

    fn seen(position: f64) -> Seen {
        let phase = AxisPhase::Following;
        let (position, velocity) = (Radians(position), RadiansPerSecond(1.0));
        Seen {
            feedback: AxisFeedback { position, velocity, phase, fresh: true, ..AxisFeedback::default() },
            ..Seen::default()
        }
    }

    #[test]
    fn old_mode_set_points_continue_until_drive_shows_new_mode() {
        let modes = CyclicMode::ALL;
        for (from, to) in modes.into_iter().flat_map(|from| modes.map(|to| (from, to))) {
            let mut it = supervisor(from);
            let before = it.step(PERIOD, setpoint(0.502), &seen(0.5));
            assert_eq!(before.reason, None, "{from:?}");
            it.change_mode(to, &seen(0.501).feedback);
            // A mode without positions begins where the axis will be.
            let asked = if from == CyclicMode::Position { 0.503 } else { 0.502 };
            let now = it.step(PERIOD, setpoint(asked), &seen(0.501));
            assert_eq!((now.reason, now.intervention), (None, None), "{from:?} to {to:?}");
            let (before, now) = (before.setpoint, now.setpoint);
            let goes_on = match from {
                CyclicMode::Position => ((now.position - before.position).0 - 0.001).abs() < 1e-9,
                CyclicMode::Velocity => (now.velocity.0 - 1.0).abs() < 1e-6,
                CyclicMode::Torque => now.torque == before.torque,
            };
            assert!(goes_on, "{from:?} to {to:?}: {before:?} then {now:?}");
            it.settle_mode();
            let settled = it.step(PERIOD, setpoint(0.504), &seen(0.502)).setpoint;
            if to == CyclicMode::Velocity {
                assert_eq!((settled.torque, settled.velocity.0), (NewtonMetres::ZERO, 1.0), "{from:?}");
            }
        }
    }

    /// A set-point of the mode before is no place that the axis comes from.
    #[test]
    fn first_position_is_compared_with_the_place_of_the_axis() {
        for from in [AxisMode::CyclicVelocity, AxisMode::CyclicTorque, AxisMode::ProfilePosition] {
            let mut it = supervisor(CyclicMode::Velocity);
            it.change_mode(from, &seen(0.5).feedback);
            it.settle_mode();
            // A velocity without a position, and a destination far away.
            let asked = match from {
                AxisMode::ProfilePosition => setpoint(0.9),
                _ => AxisSetpoint { position: Radians::ZERO, ..setpoint(0.5) },
            };
            for _ in 0..5 {
                it.step(PERIOD, asked, &seen(0.5));
            }
            assert_eq!(it.stopped(), None, "{from:?}");
            it.change_mode(AxisMode::CyclicPosition, &seen(0.5).feedback);
            it.settle_mode();
            it.step(PERIOD, setpoint(0.501), &seen(0.5));
            assert_eq!(it.stopped(), None, "{from:?}");
        }
    }

    /// At standstill, by a controller or by supervision, set-points begin at the axis, whatever was
    /// followed before.
    #[test]
    fn profile_mode_changes_start_at_the_axis_position() {
        let profiles = [AxisMode::ProfilePosition, AxisMode::ProfileVelocity, AxisMode::ProfileTorque];
        for (profile, cyclic) in
            profiles.into_iter().flat_map(|it| CyclicMode::ALL.map(|cyclic| (it, cyclic)))
        {
            let mut it = supervisor(cyclic);
            it.change_mode(profile, &seen(0.7).feedback);
            let mut held = seen(0.7);
            held.feedback.phase = AxisPhase::HoldingAt(Radians(0.7));
            held.feedback.velocity = RadiansPerSecond::ZERO;
            let sent = it.step(PERIOD, AxisSetpoint { position: Radians(0.7), ..setpoint(0.7) }, &held);
            assert_eq!((sent.reason, it.settings().mode), (None, profile));
            assert!((sent.setpoint.position.0 - 0.7).abs() < 1e-3, "{cyclic:?} to {profile:?}: {sent:?}");
            it.change_mode(cyclic, &held.feedback);
            let back =
                it.step(PERIOD, AxisSetpoint { position: Radians(0.7), ..AxisSetpoint::default() }, &held);
            assert_eq!((back.reason, it.settings().mode), (None, cyclic.into()));
            assert_eq!(back.setpoint.position, Radians(0.7));
        }
        // A stop by supervision continues.
        let mut it = supervisor(CyclicMode::Velocity);
        it.stop_for(super::super::StopReason::Step);
        it.change_mode(AxisMode::CyclicPosition, &seen(0.6).feedback);
        let sent = it.step(PERIOD, setpoint(0.5), &seen(0.6));
        assert_eq!((sent.setpoint.position, it.stopped().is_some()), (Radians(0.6), true));
    }
}
