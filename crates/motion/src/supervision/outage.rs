//! Outage of an axis: it exchanges no process data; and its return.

use super::{
    AfterOutage, BLIND_CYCLES, Braking, CyclicMode, Hold, Intervention, Limits, OUTAGE_CYCLES, Seen,
    StopReason, Supervisor,
};
use crate::axis::{AxisFeedback, AxisPhase, AxisSetpoint, TrajectoryPoint};
use crate::online::{AxisLimits, OnlineError, OnlineMotion, Synchronisation, Target};
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, Seconds};

impl Supervisor {
    /// Time without process data of the axis before its drive is sent a quick stop.
    #[must_use]
    pub fn outage_time(&self) -> Seconds {
        self.settings.outage.time.unwrap_or(self.period * f64::from(OUTAGE_CYCLES))
    }

    /// Stops an axis without process data for more than [`BLIND_CYCLES`], and restarts at its
    /// position when it returns.
    pub(super) fn watch_outage(&mut self, seen: &Seen) {
        let held = seen.homing || seen.feedback.phase != AxisPhase::NotEnabled;
        if seen.implausible > BLIND_CYCLES {
            self.lose(StopReason::Implausible, true);
        } else if held && seen.missed > BLIND_CYCLES {
            let for_long = self.period * seen.missed as f64 > self.outage_time();
            // A host that stalls again and again ends its outage each time: the stop continues.
            let returns = matches!(self.hold, Hold::Stopped { braking: Braking::Return { .. }, .. });
            if for_long || !(returns && seen.feedback.fresh) {
                self.lose(StopReason::Outage, for_long);
            }
        }
        if seen.missed == 0 {
            self.while_heard = self.sent.velocity;
        }
        if seen.feedback.fresh {
            self.find_again(&seen.feedback);
        } else if self.stopped().is_some_and(|it| {
            it.is_unreferenced() || matches!(it, StopReason::Outage | StopReason::Implausible)
        }) {
            // An acknowledgement counts once it is known what is acknowledged.
            self.acknowledged = false;
        }
    }

    /// True if a stop for an outage may end, once the axis is at standstill.
    pub(super) fn is_over(&self, feedback: &AxisFeedback) -> bool {
        let resumes = self.settings.outage.after == AfterOutage::Resume;
        feedback.fresh && (resumes || self.acknowledged)
    }

    /// The axis's drive has left Op, or was without power: it is not enabled again before this stop
    /// has ended.
    pub fn lose_drive(&mut self) {
        self.lose(StopReason::Outage, true);
    }

    pub(super) fn lose(&mut self, reason: StopReason, for_long: bool) {
        let reason = self.stopped().filter(|reason| reason.is_latched()).unwrap_or(reason);
        let braking = match self.hold {
            Hold::Stopped {
                braking:
                    Braking::Drive(Intervention::QuickStop | Intervention::Disable | Intervention::CutOff),
                ..
            } => return,
            _ if for_long => Braking::Drive(Intervention::QuickStop),
            Hold::Stopped { braking: Braking::Drive(_) | Braking::Blind { .. }, .. } => return,
            _ if self.drive_makes_the_way() => self.halt(reason),
            _ => Braking::Blind { velocity: self.sent.velocity },
        };
        self.hold = Hold::Stopped { reason, braking };
        self.acknowledged = false;
        self.asked = None;
    }

    /// From the axis's position and speed to standstill.
    fn find_again(&mut self, feedback: &AxisFeedback) {
        let Hold::Stopped { reason, braking: Braking::Blind { velocity: before } } = self.hold else {
            return;
        };
        let braking = match self.mode() {
            _ if feedback.phase == AxisPhase::NotEnabled => Braking::Hard,
            CyclicMode::Torque => self.halt(reason),
            _ => self
                .plan_way_back(feedback, before)
                .map_or(Braking::Hard, |()| Braking::Return { begins: true }),
        };
        self.hold = Hold::Stopped { reason, braking };
    }

    /// Begins where the axis will be when its drive takes the set-point, at its speed; or as near
    /// to that as one step allows, and stops where the axis would. A velocity is clamped to its
    /// limit and to the velocity sent before the outage: set-points that are held or fall have not
    /// sped the axis up, and a single wrong reply must not.
    pub(super) fn plan_way_back(
        &mut self,
        feedback: &AxisFeedback,
        before: RadiansPerSecond,
    ) -> Result<(), OnlineError> {
        let limits = self.settings.limits;
        let fastest = match self.mode() {
            // It does not get faster than it was.
            CyclicMode::Velocity => before.abs(),
            _ => {
                let sent = self.while_heard.abs().0.max(before.abs().0) + limits.velocity.0 * OVERSHOOT;
                RadiansPerSecond(sent.min(highest_velocity(&limits, self.period).0))
            }
        };
        let velocity = RadiansPerSecond(feedback.velocity.0.clamp(-fastest.0, fastest.0));
        let position = feedback.position + velocity * self.period;
        let there = TrajectoryPoint { position, velocity, ..TrajectoryPoint::default() };
        self.way_back.begin(0, there)?;
        let (here, step) = (self.sent.position, limits.step);
        let nearest = Radians(position.0.clamp((here - step).0, (here + step).0));
        if self.mode() == CyclicMode::Position && nearest != position {
            let rest = self.way_back.advance(self.way_back.remaining())[0].position;
            self.way_back.begin(0, TrajectoryPoint { position: nearest, ..there })?;
            self.way_back.aim_axis(0, Target::rest_at(self.inside(rest)))?;
        }
        Ok(())
    }

    /// The nearest place within the position limits.
    fn inside(&self, position: Radians) -> Radians {
        self.bounds().map_or(position, |(lowest, highest)| Radians(position.0.clamp(lowest.0, highest.0)))
    }

    /// A position is held; a velocity falls at the deceleration, a torque in its time. Each falls
    /// by one cycle's worth, however long the host stalled, because the drive takes it at once.
    pub(super) fn stand_or_fall(&mut self) {
        let limits = &self.settings.limits;
        let fallen = |value: f64, by: f64| value.signum() * (value.abs() - by).max(0.0);
        self.sent = match self.mode() {
            CyclicMode::Position => {
                AxisSetpoint { position: self.sent.position, ..AxisSetpoint::default() }
            }
            CyclicMode::Velocity => {
                let by = limits.deceleration * self.period;
                AxisSetpoint { velocity: RadiansPerSecond(fallen(self.sent.velocity.0, by.0)), ..self.sent }
            }
            CyclicMode::Torque => {
                let by = limits.torque * (self.period / super::braking::TORQUE_RAMP);
                AxisSetpoint { torque: NewtonMetres(fallen(self.sent.torque.0, by.0)), ..self.sent }
            }
        };
    }

    /// To a point of the way to standstill.
    pub(super) fn return_to(&mut self, point: TrajectoryPoint, begins: bool) {
        let position = self.inside(point.position);
        let moved = (position - self.sent.position) / self.period;
        let velocity = if begins { point.velocity } else { moved };
        self.sent = AxisSetpoint { position, velocity, torque: NewtonMetres::ZERO };
    }
}

/// Share of the limit of velocity by which an axis may be faster than it was sent.
const OVERSHOOT: f64 = 0.1;

/// A way back for an axis with these limits.
pub(super) fn way_back(limits: &Limits, period: Seconds) -> Result<OnlineMotion, OnlineError> {
    let limits = AxisLimits {
        velocity: highest_velocity(limits, period),
        acceleration: limits.acceleration,
        jerk: limits.jerk,
    };
    OnlineMotion::new(&[limits], Synchronisation::Independent)
}

/// The limit of velocity, or the speed that takes a largest step in every cycle.
fn highest_velocity(limits: &Limits, period: Seconds) -> RadiansPerSecond {
    RadiansPerSecond(limits.velocity.0.min((limits.step / period).0))
}
