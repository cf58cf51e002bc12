//! Supervision between a controller's set-points and the drive of an axis.
//!
//! A [`Supervisor`] checks every number of one axis on every cycle, keeps it within its limits, and
//! stops the axis when something is wrong. It integrates the set-points sent, not the commanded
//! ones: for any command, positions sent move at most at the velocity limit and stay within the
//! position limits.
//!
//! * **Runaway** ([`Supervisor::with_velocity_error`]), an axis in csv or cst that moves against
//!   its command, or faster than it: no torque at once, latched.
//! * **Saturated**, reported while it lasts: speeds up to 5 % above the limit, torques above the
//!   limit, speeds too high to stop before a position limit (*soft stop*), and accelerations and
//!   jerks above their written limits. A source that is beyond these for 100 ms without catching up
//!   is stopped.
//! * **Stopped**, latched until it is acknowledged: NaN or infinity, a position beyond its limit, a
//!   velocity far beyond its limit, a step, a following error, a drive in fault, a failed homing.
//! * **Stopped** while the command is stale, according to [`OnStale`]. It ends by itself once a
//!   command is fresh again and the axis is at standstill.
//!
//! * **Outage** ([`Outage`]), no process data of the axis: set-points continue for
//!   [`BLIND_CYCLES`]. Then positions are held, velocities and torques fall to zero, and in the end
//!   the drive is sent a quick stop. After its return they begin at the axis, by no more than a
//!   step, and stop within velocity, acceleration and jerk.
//! * **Implausible** ([`Seen::implausible`]), positions that the axis cannot have reached: as an
//!   outage, except that the quick stop follows right after [`BLIND_CYCLES`], and latched.
//! * **Unreferenced** ([`Supervisor::unreference`]), its position may have changed unnoticed: the
//!   drive's quick stop, and no motion until the position is known again.
//! * **Interlocked** ([`InterlockState`]): stopped, then without torque.
//! * **Waits for a start** (see [`START_TIME`]): its torque was taken by power, safe torque off or
//!   a missing permission, and the return of that moves nothing.
//! * **Brake that contradicts its command** ([`Seen::brake`]): stopped, then without torque once
//!   the brake is closed, latched.
//! * **Stopped with another axis** ([`OtherAxis`]): stopped within its own limits, while the other
//!   one is stopped.
//!
//! * **Jogged** ([`Jog`]): moved slowly by its operator, even where controllers may not move it:
//!   not homed, far outside its limits, in set-up mode, or in a chain with an axis that is not
//!   ready.
//!
//! * **Profile modes** ([`AxisMode::is_profile`]): the drive makes the motion, within the speeds
//!   and ramps in its objects. The set-point is held within the limits, the drive's feedback is
//!   evaluated, and the drive is halted to stop it.
//!
//! * **Quick stop not carried out** ([`QuickStopStep`]): a drive that stays enabled is stopped by
//!   set-points or a halt, then disabled behind its brake.
//!
//! An axis that is stopped brakes at its deceleration and then holds its place. Its controller is
//! shown [`AxisPhase::HoldingAt`] with the place its set-points have to begin at
//! ([`Supervisor::phase`]), as after enabling.
//!
//! Simplification: without the drive's torque, or where the drive brakes by itself (quick stop,
//! halt), the drive decides how hard it brakes. Speeds and positions then come from its feedback.

mod braking;
mod clamp;
mod drive_torque;
mod ending;
mod halting;
mod interlock;
mod jog;
mod lead;
mod limits;
mod mode_change;
mod other_axis;
mod outage;
mod overshoot;
mod profile;
mod quick_stop;
mod readiness;
mod reference;
mod runaway;
mod seen;
mod slope;
mod start;

#[cfg(test)]
mod tests;

use crate::axis::{AxisFeedback, AxisPhase, AxisSetpoint};
use crate::online::OnlineMotion;
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};
use braking::Braking;
use clamp::Clamp;
use halting::Halting;
use jog::Jogging;
use overshoot::Overshoot;
use runaway::Runaway;
use slope::Slope;

pub use ending::{END_TIME, FREE_TIME, HEED_TIME};
pub use halting::is_enabled_meanwhile;
pub use jog::{FASTEST_JOG, JogLimits};
pub use limits::{
    FollowingErrorLimit, LARGEST_LIMIT, Limits, OUTAGE_CYCLES, Outage, Settings, SettingsError, Written,
};
pub use other_axis::OtherAxis;
pub use profile::DriveProfile;
pub use quick_stop::{ANSWER, QuickStopStep, StoppingMeans};
pub use runaway::{RUNAWAY_TIME, VELOCITY_ERROR};
pub use seen::{Ending, InterlockState, Intervention, Jog, Seen, StopReason, Supervised};
pub use start::START_TIME;
pub use types::cycle::BLIND_CYCLES;
pub use types::{AfterOutage, AxisMode, CyclicMode, OnStale};

/// Watches over one axis.
#[derive(Clone, Debug)]
pub struct Supervisor {
    settings: Settings,
    period: Seconds,
    hold: Hold,
    /// Command the drive was last sent.
    sent: AxisSetpoint,
    /// Command of the controller last taken; `None` before, and after a stop.
    asked: Option<Radians>,
    /// Time the axis has been too far away.
    away: Seconds,
    acknowledged: bool,
    /// Start requests: nothing that returns moves the axis.
    start: start::Start,
    /// Stop of another axis that this one is stopped with.
    other: OtherAxis,
    /// A stop with another axis waits for a reset.
    awaits_reset: bool,
    /// Reason that its position may be another one than reported.
    unreferenced: Option<StopReason>,
    /// Since the cycle ends.
    ending: Option<ending::Ended>,
    /// Velocity last sent while the axis had process data.
    while_heard: RadiansPerSecond,
    /// Way to standstill, after an outage.
    way_back: OnlineMotion,
    /// Written limits of acceleration and jerk.
    clamp: Clamp,
    /// Previous mode, until the drive works in the requested one.
    before: Option<CyclicMode>,
    means: StoppingMeans,
    /// Velocity last reported by trusted feedback.
    believed: Option<RadiansPerSecond>,
    /// The quick stop that is requested.
    quick_stop: Option<quick_stop::QuickStop>,
    quick_stop_step: Option<QuickStopStep>,
    /// The halt that is requested.
    halting: Option<Halting>,
    /// Since a quick stop its controller has not disabled it: its set-points are from before.
    after_quick_stop: bool,
    /// Speed by which the axis may differ from its command in csv and cst.
    velocity_error: RadiansPerSecond,
    runaway: Runaway,
    /// Way by which the axis is ahead of its set-point.
    lead: Radians,
    overshoot: Overshoot,
    jogging: Jogging,
    /// Torque limit of the drive, where the cycle sets it.
    drive_torque: Option<drive_torque::DriveTorque>,
    /// Difference of positions that is no motion.
    tolerance: Radians,
    /// Not homed though it has to be, or far outside its limits.
    not_ready: Option<StopReason>,
    /// Automatic motion is not permitted.
    in_set_up: bool,
    /// It is on its way back into its position limits.
    returns: bool,
    /// It is outside its position limits by more than its tolerance, and was not within them since.
    is_outside: bool,
}

/// Holder of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Hold {
    /// The controller.
    Free,
    /// Supervision, because of this.
    Stopped { reason: StopReason, braking: Braking },
}

impl Supervisor {
    /// For an axis with cycles every `period`.
    ///
    /// # Errors
    /// A number that is not finite or out of its range.
    pub fn new(settings: Settings, period: Seconds) -> Result<Self, SettingsError> {
        settings.check()?;
        if !(period.is_finite() && period.0 > 0.0) {
            return Err(SettingsError::Period(period.0));
        }
        Ok(Self {
            settings,
            period,
            hold: Hold::Free,
            sent: AxisSetpoint::default(),
            asked: None,
            away: Seconds::ZERO,
            acknowledged: false,
            start: start::Start::default(),
            other: OtherAxis::Free,
            awaits_reset: false,
            unreferenced: None,
            ending: None,
            while_heard: RadiansPerSecond::ZERO,
            way_back: outage::way_back(&settings.limits, period)?,
            clamp: Clamp::new(Slope::of(&settings.limits, period.0), period),
            before: None,
            means: StoppingMeans::default(),
            believed: None,
            quick_stop: None,
            quick_stop_step: None,
            halting: None,
            after_quick_stop: false,
            velocity_error: settings.limits.velocity * VELOCITY_ERROR,
            runaway: Runaway::default(),
            lead: Radians::ZERO,
            overshoot: Overshoot::default(),
            jogging: Jogging::of(&settings.limits, JogLimits::usual(&settings.limits))?,
            drive_torque: None,
            tolerance: Radians::ZERO,
            not_ready: None,
            in_set_up: false,
            returns: false,
            is_outside: false,
        })
    }

    /// Limits it was made of.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// One cycle, `elapsed` after the last: from the controller's command to the drive's.
    pub fn step(&mut self, elapsed: Seconds, asked: AxisSetpoint, seen: &Seen) -> Supervised {
        self.judge(elapsed, asked, seen);
        self.send(elapsed, asked, seen)
    }

    /// First half of [`Self::step`]: decides whether the axis is stopped or released. Its result
    /// may stop other axes in the same cycle, by [`Self::stop_with`].
    pub fn judge(&mut self, elapsed: Seconds, asked: AxisSetpoint, seen: &Seen) {
        let elapsed = self.since_the_last(elapsed);
        self.follow_phase(&seen.feedback);
        self.after_quick_stop &= seen.disables || seen.quick_stop;
        self.watch_outage(seen);
        self.watch_drive(elapsed, seen);
        self.watch_overshoot(seen);
        self.watch_readiness(seen);
        self.watch(elapsed, asked, seen);
        self.watch_halt(elapsed, seen);
        self.step_drive_torque(elapsed, seen);
    }

    /// Second half of [`Self::step`]: what the drive gets.
    pub fn send(&mut self, elapsed: Seconds, asked: AxisSetpoint, seen: &Seen) -> Supervised {
        let elapsed = self.since_the_last(elapsed);
        let last = self.sent;
        self.note_lead(&seen.feedback);
        let quick_stop = self.step_quick_stop(elapsed, seen);
        let reason = match self.hold {
            Hold::Free if quick_stop.is_none() => {
                let reason = self.pass(elapsed, asked, &seen.feedback);
                // Only now: the clamp takes the difference to the set-point before.
                self.asked = Some(asked.position);
                self.moves_inwards_only(seen).or(reason)
            }
            Hold::Free => {
                self.asked = None;
                self.lead_to_rest(elapsed, seen);
                self.begin_course(self.sent.velocity);
                None
            }
            Hold::Stopped { reason, .. } => {
                match quick_stop {
                    Some(_) => {
                        self.leave_planned_braking();
                        self.lead_to_rest(elapsed, seen);
                    }
                    None if self.jogs() => self.jog(elapsed, seen),
                    None => self.brake(elapsed, &seen.feedback),
                }
                Some(reason)
            }
        };
        self.carry_on(last, elapsed);
        let intervention = quick_stop.or_else(|| self.intervention());
        self.note_sent(intervention, seen);
        Supervised { setpoint: self.sent, intervention, reason }
    }

    /// Kind of its set-points.
    fn mode(&self) -> CyclicMode {
        self.settings.mode.cyclic()
    }

    fn since_the_last(&self, elapsed: Seconds) -> Seconds {
        if elapsed.is_finite() && elapsed.0 > 0.0 { elapsed } else { self.period }
    }

    /// Stops the axis for an external reason, unless a latched reason has it already. An
    /// unreferenced axis that was reset may be enabled and homed: it is stopped as any other.
    pub fn stop_for(&mut self, reason: StopReason) {
        if self.yields() {
            self.stop(reason, None);
        }
    }

    /// Ends a latched stop as soon as the axis is at standstill and its cause is gone.
    pub fn acknowledge(&mut self) {
        self.acknowledged = true;
    }

    /// Reason of the stop, if the axis is stopped.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        match self.hold {
            Hold::Free => None,
            Hold::Stopped { reason, .. } => Some(reason),
        }
    }

    /// View for the controller: while supervision has an enabled axis, the place where set-points
    /// begin.
    #[must_use]
    pub fn phase(&self, phase: AxisPhase) -> AxisPhase {
        match (self.hold, phase) {
            (Hold::Free, AxisPhase::Following) if self.quick_stop.is_some() => {
                AxisPhase::HoldingAt(self.sent.position)
            }
            (Hold::Free, _) | (_, AxisPhase::NotEnabled) => phase,
            (Hold::Stopped { .. }, AxisPhase::HoldingAt(_)) => phase,
            (Hold::Stopped { .. }, AxisPhase::Following) => AxisPhase::HoldingAt(self.sent.position),
        }
    }

    /// If a drive does not follow set-points, they begin at its position.
    fn follow_phase(&mut self, feedback: &AxisFeedback) {
        let begin = match feedback.phase {
            AxisPhase::NotEnabled => feedback.position,
            AxisPhase::HoldingAt(position) => position,
            AxisPhase::Following => return,
        };
        self.away = Seconds::ZERO;
        if begin.is_finite() {
            self.sent = AxisSetpoint { position: begin, ..AxisSetpoint::default() };
            self.asked = Some(begin);
        }
        if let Some(stop) = &mut self.quick_stop {
            stop.forget_way_back();
        }
        self.begin_course(RadiansPerSecond::ZERO);
        // A way back counts from where the axis was followed: it is not there any more.
        if let Hold::Stopped { braking: braking @ Braking::Return { .. }, .. } = &mut self.hold {
            *braking = Braking::Hard;
        }
    }

    /// True if the axis has to be stopped, or may be released.
    fn watch(&mut self, elapsed: Seconds, asked: AxisSetpoint, seen: &Seen) {
        if seen.ending == Ending::No {
            self.ending = None;
        }
        if let Hold::Stopped { reason, .. } = self.hold {
            let gone = match reason {
                StopReason::Stale => seen.stale.is_none(),
                StopReason::Fault => self.acknowledged && !seen.fault,
                StopReason::Outage => self.is_over(&seen.feedback),
                StopReason::Interlock => self.acknowledged && seen.interlock != InterlockState::Stop,
                StopReason::NotPermitted => seen.interlock == InterlockState::Clear,
                StopReason::BrakeNotOpen | StopReason::BrakeNotClosed => {
                    self.acknowledged && seen.brake.is_none()
                }
                StopReason::OtherAxis => {
                    self.other == OtherAxis::Free && (self.acknowledged || !self.awaits_reset)
                }
                StopReason::AwaitsStart => self.is_started(seen),
                // A request that stopped the axes has ended.
                StopReason::Ending => seen.ending == Ending::No,
                StopReason::Jog => true,
                StopReason::NotHomed
                | StopReason::OutsideLimits
                | StopReason::SetUp
                | StopReason::AfterSetUp
                | StopReason::Chain => self.is_ready_again(reason),
                _ => self.acknowledged,
            };
            let gone = gone && (self.acknowledged || !self.holds_until_reset());
            if gone && self.rests(&seen.feedback) {
                self.release(seen);
                self.away = Seconds::ZERO;
                self.asked = Some(self.sent.position);
                self.begin_course(RadiansPerSecond::ZERO);
            }
        }
        if seen.fault {
            if self.stopped() != Some(StopReason::Fault) {
                self.stop(StopReason::Fault, None);
            }
        } else if self.is_led_in_velocity() && self.watch_runaway(elapsed, seen) {
            self.stop(StopReason::Runaway, None);
        } else if self.is_interlocked(seen) {
            self.hold_interlocked(seen);
        } else if let Some(reason) = seen.brake {
            self.hold_for_brake(reason, seen);
        } else if self.watch_jog(elapsed, seen) {
            // Its set-points are made here.
        } else if seen.homing && seen.stale.is_some() && self.stops_homing() {
            if self.stopped() != Some(StopReason::Stale) {
                self.stop(StopReason::Stale, seen.stale);
            }
        } else if self.waits_for().is_some() {
            self.hold_unready();
        } else if self.hold == Hold::Free {
            let enabled = seen.feedback.phase != AxisPhase::NotEnabled;
            if let Some(ramp) = seen.stale {
                self.stop(StopReason::Stale, Some(ramp));
            } else if enabled && self.watch_end(elapsed, seen) {
                self.stop(StopReason::Ending, None);
            } else if enabled && !self.after_quick_stop {
                if let Some(reason) = self.trouble(elapsed, asked, seen) {
                    self.stop(reason, None);
                }
            }
        }
    }

    /// True while supervision makes the set-points of an axis in csv: of a jog, a hold, or a stop.
    fn is_led_in_velocity(&self) -> bool {
        let led = matches!(
            self.hold,
            Hold::Stopped { braking: Braking::Hard | Braking::Ramp { .. } | Braking::Jog, .. }
        );
        led && self.mode() == CyclicMode::Velocity
    }

    /// True if a stale command ends a homing, and nothing latched has the axis.
    fn stops_homing(&self) -> bool {
        matches!(self.settings.on_stale, OnStale::QuickStop | OnStale::Disable) && self.yields()
    }

    /// Fault of the controller's command for an enabled axis, or of the axis.
    fn trouble(&mut self, elapsed: Seconds, asked: AxisSetpoint, seen: &Seen) -> Option<StopReason> {
        let (mode, limits) = (self.mode(), self.settings.limits);
        let feedback = &seen.feedback;
        let finite = asked.position.is_finite()
            && asked.velocity.is_finite()
            && asked.torque.is_finite()
            && feedback.position.is_finite()
            && feedback.velocity.is_finite();
        if !finite {
            return Some(StopReason::NotFinite);
        }
        if self.watch_runaway(elapsed, seen) {
            return Some(StopReason::Runaway);
        }
        let highest_velocity = limits.velocity * TOLERANCE;
        if self.drive_makes_the_way() {
            return self.trouble_on_its_way(elapsed, asked, seen);
        }
        if self.clamp.is_over() {
            return Some(StopReason::AccelerationLimit);
        }
        match mode {
            CyclicMode::Position => {
                let cycles = (elapsed / self.period).round().max(1.0);
                let moved = (asked.position - self.asked.unwrap_or(self.sent.position)).abs();
                let beyond = self.bounds().is_some_and(|(lowest, highest)| {
                    asked.position < lowest - ROUNDING || asked.position > highest + ROUNDING
                });
                if moved > limits.step * cycles + ROUNDING {
                    Some(StopReason::Step)
                } else if moved / elapsed > highest_velocity {
                    Some(StopReason::VelocityLimit)
                } else if beyond {
                    Some(StopReason::PositionLimit)
                } else {
                    self.lags(elapsed, seen).then_some(StopReason::FollowingError)
                }
            }
            CyclicMode::Velocity => {
                (asked.velocity.abs() > highest_velocity).then_some(StopReason::VelocityLimit)
            }
            CyclicMode::Torque => {
                let deceleration = limits.deceleration;
                let slowed = self.slowed(feedback.velocity, feedback.position, elapsed, deceleration);
                if feedback.velocity.abs() > highest_velocity {
                    Some(StopReason::VelocityLimit)
                } else {
                    (slowed != feedback.velocity).then_some(StopReason::PositionLimit)
                }
            }
        }
    }

    /// True if the axis has lagged behind its set-point too far for too long, by its position or by
    /// its drive's own following error, the larger of the two.
    fn lags(&mut self, elapsed: Seconds, seen: &Seen) -> bool {
        let feedback = &seen.feedback;
        let Some(FollowingErrorLimit { distance, timeout }) = self.settings.following_error else {
            return false;
        };
        let following = feedback.phase == AxisPhase::Following;
        if following && feedback.fresh {
            let own = seen.following_error.unwrap_or(Radians::ZERO).abs();
            // Where the drive makes the way it alone knows where the axis should be.
            let away = (self.sent.position - feedback.position).abs();
            let far = (away > distance && !self.drive_makes_the_way()) || own > distance;
            self.away = if far { self.away + elapsed } else { Seconds::ZERO };
        }
        self.away.0 > 0.0 && self.away >= timeout
    }

    /// Command of the controller, within the limits; true if a limit held it back.
    fn pass(
        &mut self,
        elapsed: Seconds,
        asked: AxisSetpoint,
        feedback: &AxisFeedback,
    ) -> Option<StopReason> {
        if feedback.phase == AxisPhase::NotEnabled {
            return None;
        }
        self.watch_return(feedback, self.asked == Some(self.sent.position));
        let (mode, limits) = (self.mode(), self.limits_now());
        let within = |velocity: RadiansPerSecond| {
            RadiansPerSecond(velocity.0.clamp(-limits.velocity.0, limits.velocity.0))
        };
        let slope = self.clamp.slope.filter(|_| !self.drive_makes_the_way());
        match (mode, slope) {
            (CyclicMode::Position, _) if self.drive_makes_the_way() => {
                self.send_destination(asked, feedback)
            }
            (CyclicMode::Position, Some(slope)) => self.clamp_position(slope, elapsed, asked),
            (CyclicMode::Velocity, Some(slope)) => self.clamp_velocity(slope, elapsed, asked, feedback),
            (CyclicMode::Position, None) => {
                let away = asked.position - self.sent.position;
                let wanted = within(away / elapsed);
                let slowed = self.slowed(wanted, self.sent.position, elapsed, limits.acceleration);
                let slowed = self.slowed_for_lead(slowed, elapsed);
                let moved = (slowed * elapsed).0.clamp(-limits.step.0, limits.step.0);
                // Sums must not drift away from the command.
                let reached = (moved - away.0).abs() <= ROUNDING.0;
                let position = if reached { asked.position } else { self.sent.position + Radians(moved) };
                self.sent = AxisSetpoint {
                    position,
                    velocity: Radians(moved) / elapsed,
                    torque: NewtonMetres::ZERO,
                };
                (!reached && slowed != wanted).then_some(StopReason::PositionLimit)
            }
            (CyclicMode::Velocity, None) => {
                let wanted = within(asked.velocity);
                let slowed = self.slowed(wanted, feedback.position, elapsed, limits.acceleration);
                self.move_on(slowed, NewtonMetres::ZERO, feedback.position, elapsed);
                (slowed != wanted).then_some(StopReason::PositionLimit)
            }
            (CyclicMode::Torque, _) => {
                let (lowest, highest) = self.torques(feedback.position);
                let torque = NewtonMetres(asked.torque.0.clamp(lowest.0, highest.0));
                self.move_on(RadiansPerSecond::ZERO, torque, feedback.position, elapsed);
                None
            }
        }
    }

    /// Sends a velocity or torque; where positions count, the place that the velocity leads to from
    /// `position`.
    fn move_on(
        &mut self,
        velocity: RadiansPerSecond,
        torque: NewtonMetres,
        position: Radians,
        elapsed: Seconds,
    ) {
        let mut velocity = velocity;
        let mut place = position;
        if self.mode() == CyclicMode::Position {
            velocity = self.slowed(velocity, position, elapsed, self.settings.limits.deceleration);
            let step = self.settings.limits.step.0;
            let moved = (velocity * elapsed).0.clamp(-step, step);
            velocity = Radians(moved) / elapsed;
            place = position + Radians(moved);
        }
        self.sent = AxisSetpoint { position: place, velocity, torque };
    }

    /// `velocity` that still stops before the limits from `position`.
    fn slowed(
        &self,
        velocity: RadiansPerSecond,
        position: Radians,
        elapsed: Seconds,
        deceleration: RadiansPerSecondSquared,
    ) -> RadiansPerSecond {
        // Set-points are kept at once; an axis that is sent velocities or torques answers some
        // cycles later.
        let cycles = if self.mode() == CyclicMode::Position { 0.0 } else { ANSWER_CYCLES };
        let reaction = elapsed + self.period * cycles;
        match (self.mode(), self.clamp.slope) {
            (CyclicMode::Position, Some(slope)) => {
                slope.slowed(velocity, position, self.bounds(), deceleration, elapsed)
            }
            _ => at_wall(velocity, position, self.bounds(), deceleration, reaction),
        }
    }

    /// `velocity` slowed by the deceleration of a stop. Clamped set-points and stops both use it:
    /// with different values a stop close to a limit would begin with a jump of velocity.
    fn slowed_for_stop(
        &self,
        velocity: RadiansPerSecond,
        position: Radians,
        elapsed: Seconds,
    ) -> RadiansPerSecond {
        self.slowed(velocity, position, elapsed, self.settings.limits.deceleration * slope::TOLERANCE)
    }

    /// The position limits; an axis outside them is not moved any farther out.
    fn bounds(&self) -> Option<(Radians, Radians)> {
        let (lowest, highest) = self.settings.limits.position?;
        let here = self.sent.position;
        match self.mode() {
            CyclicMode::Position => Some((Radians(lowest.0.min(here.0)), Radians(highest.0.max(here.0)))),
            CyclicMode::Velocity | CyclicMode::Torque => Some((lowest, highest)),
        }
    }
}

/// The highest speed towards a limit `distance` away: after `reaction` at this speed, braking at
/// `deceleration` ends at the limit. 0 at the limit and behind it.
///
/// It solves `v T + v^2 / 2a = d`. An axis that keeps to it from cycle to cycle (`T` a cycle or
/// longer) never brakes harder than `a`: from `v` the next distance is at least `v^2 / 2a`, and
/// that allows `v - aT` or more.
fn highest_speed(
    distance: Radians,
    deceleration: RadiansPerSecondSquared,
    reaction: Seconds,
) -> RadiansPerSecond {
    let lost = deceleration.0 * reaction.0;
    let distance = distance.0.max(0.0);
    // The root as a quotient: no small difference of large numbers.
    let root = (lost * lost + 2.0 * deceleration.0 * distance).sqrt();
    RadiansPerSecond(if root > 0.0 { 2.0 * deceleration.0 * distance / (root + lost) } else { 0.0 })
}

/// Soft stop: `velocity`, slowed down so that an axis at `position` stops between `bounds`.
fn at_wall(
    velocity: RadiansPerSecond,
    position: Radians,
    bounds: Option<(Radians, Radians)>,
    deceleration: RadiansPerSecondSquared,
    reaction: Seconds,
) -> RadiansPerSecond {
    let Some((lowest, highest)) = bounds else { return velocity };
    let up = highest_speed(highest - position, deceleration, reaction);
    let down = highest_speed(position - lowest, deceleration, reaction);
    RadiansPerSecond(velocity.0.clamp(-down.0, up.0))
}

/// Above a limit by less than this is rounding or an eager controller: held to the limit. More is
/// an error.
const TOLERANCE: f64 = 1.05;

/// Positions nearer than this are the same: far less than an encoder count, far more than sums of
/// doubles lose.
const ROUNDING: Radians = Radians(1e-9);

/// Share of the highest speed below which an axis is at standstill.
pub const STANDS: f64 = 0.01;

/// Cycles from a set-point to the feedback that shows its effect: two on the wire, and the drive's
/// own.
const ANSWER_CYCLES: f64 = 4.0;
