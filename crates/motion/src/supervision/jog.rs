//! Jog: an operator moves an axis slowly while holding a key.
//!
//! Supervision makes the set-points of a jog, so that they keep the limits of a jog for any client.
//! While a jog moves the axis no controller has it: it is shown
//! [`AxisPhase::HoldingAt`](crate::axis::AxisPhase::HoldingAt), and begins there afterwards.
//!
//! A jog moves an axis that waits for something else than a fix: that is not homed, unreferenced
//! and reset, outside its limits, or in set-up mode. It ends with its request, and with every other
//! stop.

use core::mem;

use super::braking::Braking;
use super::{
    AxisMode, CyclicMode, Ending, Hold, Limits, NewtonMetres, RadiansPerSecond, STANDS, Seconds, Seen,
    SettingsError, StopReason, Supervisor,
};
use crate::axis::{AxisFeedback, AxisPhase, AxisSetpoint, TrajectoryPoint};
use crate::online::{AxisLimits, OnlineError, OnlineMotion, Synchronisation, Target};

/// Limits of a jog.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JogLimits {
    /// Highest speed; above 0, at most the axis's limit.
    pub velocity: RadiansPerSecond,
    /// Highest torque; above 0, at most the axis's limit.
    pub torque: NewtonMetres,
}

impl JogLimits {
    /// A tenth of the velocity limit, at most [`FASTEST_JOG`], and 30 % of the torque limit.
    #[must_use]
    pub fn usual(limits: &Limits) -> Self {
        let velocity = RadiansPerSecond((limits.velocity.0 * JOG_VELOCITY).min(FASTEST_JOG.0));
        Self { velocity, torque: limits.torque * JOG_TORQUE }
    }

    /// The same, within the limits of the axis. A number that is no limit becomes the usual one.
    fn within(self, limits: &Limits) -> Self {
        let usual = Self::usual(limits);
        let possible = |value: f64, usual: f64, most: f64| match value.is_finite() && value > 0.0 {
            true => value.min(most),
            false => usual,
        };
        Self {
            velocity: RadiansPerSecond(possible(self.velocity.0, usual.velocity.0, limits.velocity.0)),
            torque: NewtonMetres(possible(self.torque.0, usual.torque.0, limits.torque.0)),
        }
    }
}

/// Jogs of one axis.
#[derive(Clone, Debug)]
pub(super) struct Jogging {
    pub(super) limits: JogLimits,
    course: OnlineMotion,
    /// Velocity that the motion leads to.
    aim: RadiansPerSecond,
    /// Time for which the torque has been above the limit.
    pressed: Seconds,
    /// Cycles in a row without a velocity.
    still: u8,
    /// A jog has begun, and no cycle without it has come.
    runs: bool,
    /// The jog was ended by something else than its request: it does not resume by itself.
    spent: bool,
    /// Axis was enabled in set-up mode, and was not reset since.
    pub(super) after_set_up: bool,
    /// An axis of its chain is not ready.
    pub(super) chain: bool,
}

impl Jogging {
    pub(super) fn of(limits: &Limits, jog: JogLimits) -> Result<Self, OnlineError> {
        let jog = jog.within(limits);
        let motion =
            AxisLimits { velocity: jog.velocity, acceleration: limits.acceleration, jerk: limits.jerk };
        Ok(Self {
            limits: jog,
            course: OnlineMotion::new(&[motion], Synchronisation::Independent)?,
            aim: RadiansPerSecond::ZERO,
            pressed: Seconds::ZERO,
            still: 0,
            runs: false,
            spent: false,
            after_set_up: false,
            chain: false,
        })
    }

    fn begin(&mut self) {
        // A place that is a finite number: it begins.
        let _ = self.course.begin(0, TrajectoryPoint::default());
        (self.aim, self.pressed, self.runs) = (RadiansPerSecond::ZERO, Seconds::ZERO, true);
    }

    /// Velocity within the limits of a jog; 0 for no number.
    fn within(&self, velocity: RadiansPerSecond) -> RadiansPerSecond {
        let most = self.limits.velocity.0;
        match velocity.0.is_nan() {
            true => RadiansPerSecond::ZERO,
            false => RadiansPerSecond(velocity.0.clamp(-most, most)),
        }
    }

    /// Next velocity on the way to this one.
    fn velocity(&mut self, elapsed: Seconds, wanted: RadiansPerSecond) -> RadiansPerSecond {
        let wanted = self.within(wanted);
        if wanted != self.aim && self.course.aim_axis(0, Target::Velocity(wanted)).is_ok() {
            self.aim = wanted;
        }
        let velocity = self.course.advance(elapsed)[0].velocity;
        self.within(velocity)
    }
}

impl Supervisor {
    /// The same with other limits of a jog than the usual ones.
    ///
    /// # Errors
    /// Limits of the axis of which no motion can be made.
    pub fn with_jog(mut self, jog: JogLimits) -> Result<Self, SettingsError> {
        self.jogging = Jogging::of(&self.settings.limits, jog)?;
        Ok(self)
    }

    /// Limits of its jog.
    #[must_use]
    pub const fn jog_limits(&self) -> JogLimits {
        self.jogging.limits
    }

    /// True while a jog moves it, and until standstill afterwards.
    #[must_use]
    pub fn is_jogged(&self) -> bool {
        self.stopped() == Some(StopReason::Jog)
    }

    /// True if a jog may begin: the axis is at standstill, and nothing holds it that has to be
    /// fixed first.
    #[must_use]
    pub fn may_jog(&self, feedback: &AxisFeedback) -> bool {
        let stands = self.jogging.still >= STILL
            && feedback.velocity.abs() <= self.settings.limits.velocity * STANDS;
        let yields = match self.hold {
            Hold::Free => self.quick_stop.is_none() && self.before.is_none(),
            Hold::Stopped { braking: Braking::Hard | Braking::Ramp { .. }, reason } => {
                reason.is_unreferenced()
                    || matches!(
                        reason,
                        StopReason::Stale
                            | StopReason::Jog
                            | StopReason::NotHomed
                            | StopReason::OutsideLimits
                            | StopReason::SetUp
                            | StopReason::AfterSetUp
                            | StopReason::Chain
                    )
            }
            Hold::Stopped { .. } => false,
        };
        self.takes_jogs() && feedback.phase == AxisPhase::Following && stands && yields
    }

    /// True in the modes in which a jog moves an axis.
    #[must_use]
    pub const fn takes_jogs(&self) -> bool {
        matches!(self.settings.mode, AxisMode::CyclicPosition | AxisMode::CyclicVelocity)
    }

    /// True while set-points of a jog are sent.
    pub(super) const fn jogs(&self) -> bool {
        matches!(self.hold, Hold::Stopped { braking: Braking::Jog, .. })
    }

    /// Begins a jog, ends it, and watches over it. True while the jog has the axis.
    pub(super) fn watch_jog(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
        let enabled = seen.feedback.phase != AxisPhase::NotEnabled;
        let still = self.sent.velocity == RadiansPerSecond::ZERO;
        self.jogging.still = if still { self.jogging.still.saturating_add(1) } else { 0 };
        let asks = seen.jog.is_some_and(|jog| self.jogging.within(jog.velocity).0 != 0.0);
        self.jogging.spent &= asks;
        let goes = seen.jog.is_some_and(|jog| jog.permitted)
            && enabled
            && !(seen.homing || seen.braking || seen.disables || seen.quick_stop)
            && seen.ending == Ending::No
            && seen.missed == 0;
        if !self.jogs() {
            // A stop has ended it: the same request does not move the axis again.
            let ran = mem::take(&mut self.jogging.runs);
            self.jogging.spent |= asks && ran;
            if goes && asks && !self.jogging.spent && self.may_jog(&seen.feedback) {
                self.begin_jog();
            }
        } else if !goes {
            self.end_jog();
        } else if let Some(reason) = self.jog_trouble(elapsed, seen) {
            self.stop(reason, None);
        }
        self.is_jogged()
    }

    fn begin_jog(&mut self) {
        self.hold = Hold::Stopped { reason: StopReason::Jog, braking: Braking::Jog };
        self.asked = Some(self.sent.position);
        self.away = Seconds::ZERO;
        self.jogging.begin();
        self.begin_course(RadiansPerSecond::ZERO);
    }

    /// Stops at the deceleration of a stop.
    fn end_jog(&mut self) {
        if let Hold::Stopped { braking, .. } = &mut self.hold {
            *braking = Braking::Hard;
        }
        self.asked = None;
    }

    fn jog_trouble(&mut self, elapsed: Seconds, seen: &Seen) -> Option<StopReason> {
        let AxisFeedback { position, velocity, torque, .. } = seen.feedback;
        if !(position.is_finite() && velocity.is_finite() && torque.is_finite()) {
            return Some(StopReason::NotFinite);
        }
        let presses = self.presses(torque);
        self.jogging.pressed = if presses { self.jogging.pressed + elapsed } else { Seconds::ZERO };
        if self.jogging.pressed > PRESSED_TIME {
            return Some(StopReason::JogTorque);
        }
        let positions = self.mode() == CyclicMode::Position;
        (positions && self.lags(elapsed, seen)).then_some(StopReason::FollowingError)
    }

    /// Next set-point of a jog.
    pub(super) fn jog(&mut self, elapsed: Seconds, seen: &Seen) {
        let waits = self.waits_for_drive_torque();
        let jog = seen.jog.filter(|_| !waits);
        let wanted = jog.map_or(RadiansPerSecond::ZERO, |jog| jog.velocity);
        let velocity = self.jogging.velocity(elapsed, wanted);
        let position = self.sent.position + velocity * elapsed;
        let asked = AxisSetpoint { position, velocity, ..AxisSetpoint::default() };
        // The limits of the axis, and the soft stop at its position limits, hold for every source.
        self.pass(elapsed, asked, &seen.feedback);
        self.asked = Some(position);
    }
}

/// Highest speed of a jog, unless the robot file gives another one.
pub const FASTEST_JOG: RadiansPerSecond = RadiansPerSecond(0.25);

/// Cycles without a velocity after which set-points have no acceleration either.
const STILL: u8 = 4;

/// Share of the velocity limit.
const JOG_VELOCITY: f64 = 0.1;

/// Share of the torque limit.
const JOG_TORQUE: f64 = 0.3;

/// Time for which a torque may be above the limit of a jog: friction before the axis begins to
/// move.
const PRESSED_TIME: Seconds = Seconds(0.05);
