//! An axis that is not heard of, and one that is heard of again.

use super::{
    AfterOutage, BLIND_CYCLES, Braking, Course, Intervention, Mode, OUTAGE_CYCLES, Seen, StopReason,
    Supervisor,
};
use crate::axis::{AxisFeedback, AxisPhase, AxisSetpoint, TrajectoryPoint};
use crate::stop::StopProfile;
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, Seconds};

impl Supervisor {
    /// Time the axis is not heard of before its drive is asked for a quick stop.
    #[must_use]
    pub fn outage_time(&self) -> Seconds {
        self.settings.outage.time.unwrap_or(self.period * f64::from(OUTAGE_CYCLES))
    }

    /// Stops an axis that is not heard of for more than [`BLIND_CYCLES`], and begins anew where it is heard of again.
    pub(super) fn watch_outage(&mut self, seen: &Seen) {
        let held = seen.homing || seen.feedback.phase != AxisPhase::NotEnabled;
        if held && seen.missed > BLIND_CYCLES {
            let for_long = self.period * seen.missed as f64 > self.outage_time();
            // A host that stands still again and again is heard of each time: the way to rest goes on.
            let returns = matches!(self.course, Course::Stopped { braking: Braking::Return { .. }, .. });
            if for_long || !(returns && seen.feedback.fresh) {
                self.lose(for_long);
            }
        }
        if seen.feedback.fresh {
            self.find_again(&seen.feedback);
        } else if self.stopped() == Some(StopReason::Outage) {
            // An acknowledgement counts once it is known what is acknowledged.
            self.acknowledged = false;
        }
    }

    /// True if a stop for an outage may end, once the axis rests.
    pub(super) fn is_over(&self, feedback: &AxisFeedback) -> bool {
        let resumes = self.settings.outage.after == AfterOutage::Resume;
        feedback.fresh && (resumes || self.acknowledged)
    }

    fn lose(&mut self, for_long: bool) {
        let reason = self.stopped().filter(|reason| reason.is_latched()).unwrap_or(StopReason::Outage);
        let braking = match self.course {
            Course::Stopped {
                braking: Braking::Drive(Intervention::QuickStop | Intervention::Disable),
                ..
            } => return,
            _ if for_long => Braking::Drive(Intervention::QuickStop),
            Course::Stopped { braking: Braking::Drive(_) | Braking::Blind { .. }, .. } => return,
            _ => Braking::Blind { velocity: self.sent.velocity },
        };
        self.course = Course::Stopped { reason, braking };
        self.acknowledged = false;
        self.asked = None;
    }

    /// From where the axis is, as fast as it is, to rest.
    fn find_again(&mut self, feedback: &AxisFeedback) {
        let Course::Stopped { reason, braking: Braking::Blind { velocity: before } } = self.course else {
            return;
        };
        let limits = &self.settings.limits;
        let fastest = match self.settings.mode {
            // It is not sped up beyond what it did.
            Mode::Velocity => before,
            _ => limits.velocity,
        };
        let velocity = feedback.velocity.0.clamp(-fastest.0.abs(), fastest.0.abs());
        let profile = StopProfile::new(feedback.position, RadiansPerSecond(velocity), limits.deceleration)
            .and_then(|profile| profile.within_jerk(limits.jerk));
        let braking = match (self.settings.mode, profile) {
            _ if feedback.phase == AxisPhase::NotEnabled => Braking::Hard,
            (Mode::Torque, _) => Braking::Drive(Intervention::Halt),
            (_, Ok(profile)) => Braking::Return { profile, elapsed: Seconds::ZERO },
            (_, Err(_)) => Braking::Hard,
        };
        self.course = Course::Stopped { reason, braking };
    }

    /// A position stands; a velocity falls at the deceleration, a torque in its time: by a cycle's worth, however long the host stood
    /// still, for the drive takes it at once.
    pub(super) fn stand_or_fall(&mut self) {
        let limits = &self.settings.limits;
        let fallen = |value: f64, by: f64| value.signum() * (value.abs() - by).max(0.0);
        self.sent = match self.settings.mode {
            Mode::Position => AxisSetpoint { position: self.sent.position, ..AxisSetpoint::default() },
            Mode::Velocity => {
                let by = limits.deceleration * self.period;
                AxisSetpoint { velocity: RadiansPerSecond(fallen(self.sent.velocity.0, by.0)), ..self.sent }
            }
            Mode::Torque => {
                let by = limits.torque * (self.period / super::TORQUE_RAMP);
                AxisSetpoint { torque: NewtonMetres(fallen(self.sent.torque.0, by.0)), ..self.sent }
            }
        };
    }

    /// To a point of the way to rest; where that `begins` farther away than a step, towards it, no faster than the axis may.
    pub(super) fn return_to(&mut self, point: TrajectoryPoint, elapsed: Seconds, begins: bool) {
        let limits = &self.settings.limits;
        let fastest = limits.velocity * self.period;
        let most = if begins { limits.step.0 } else { fastest.0.min(limits.step.0) };
        let here = self.sent.position;
        let (lowest, highest) = self.bounds().unwrap_or((Radians(f64::MIN), Radians(f64::MAX)));
        let there = point.position.0.clamp(lowest.0, highest.0);
        let position = Radians(there.clamp(here.0 - most, here.0 + most));
        self.sent =
            AxisSetpoint { position, velocity: (position - here) / elapsed, torque: NewtonMetres::ZERO };
    }
}
