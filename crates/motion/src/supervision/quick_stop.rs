//! Quick stops, and the steps that stop an axis if its drive does not carry one out.
//!
//! While a quick stop is requested, set-points already lead to standstill: a drive that stays in
//! Operation enabled follows them. A drive that is still enabled and does not slow down for
//! [`ANSWER`] is stopped by these steps, so that no load falls:
//!
//! 1. Set-points to standstill in Operation enabled (csp, csv).
//! 2. Halt, where the drive's halt brakes.
//! 3. At standstill with trusted feedback: brake, then no torque. Without a brake, an axis that
//!    holds a load stays enabled.
//! 4. Not at standstill in time, faster than before, or no trusted feedback: brake and Disable
//!    voltage together.
//!
//! A drive that shows Quick stop active brakes by itself, unless its motor has exchanged phases. If
//! the axis gets faster for [`ANSWER`] instead, or its positions leap in one direction, it is cut
//! off as well. An outage is no sign of that, nor are other implausible positions.

use core::mem;

use super::{BLIND_CYCLES, Braking, CyclicMode, Hold, Intervention, STANDS, Seen, StopReason, Supervisor};
use crate::axis::{AxisFeedback, AxisPhase};
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, Seconds};
pub use types::state::QuickStopStep;

/// Means to stop an axis without its drive's quick stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppingMeans {
    /// Its drive's halt brakes it and keeps the torque: 0x605D is 1 or 2.
    pub halts: bool,
    /// Its drive's quick stop brakes it: 0x605A is not 0. Else the steps begin at once, for it
    /// would coast.
    pub quick_stops: bool,
    /// It holds a load that only its drive's torque holds: it stays enabled at standstill.
    pub keeps_torque: bool,
}

impl Default for StoppingMeans {
    /// By the standard's default of 0x605D, without a load.
    fn default() -> Self {
        Self { halts: true, quick_stops: true, keeps_torque: false }
    }
}

/// One quick stop, from its request on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuickStop {
    course: QuickStopStage,
    /// `Some(true)`: set-points are planned from where the axis is, and begin with the next one.
    way_back: Option<bool>,
    /// Speed at the request.
    before: RadiansPerSecond,
    /// Speed from which slowing down counts.
    reference: RadiansPerSecond,
    /// Time without slowing down, enabled.
    stuck: Seconds,
    /// Time enabled without trusted feedback.
    doubted: Seconds,
    /// Time for which the axis has run away, though its drive has the request.
    astray: Seconds,
    /// Speed from which it is faster: at the request, also of a halt before it that was ignored, or
    /// at the end of an outage.
    from: f64,
    /// Highest speed since it slowed down last.
    highest: f64,
    /// Positions that have leapt in one direction, up to the last reply.
    leaps: u64,
    /// Time since the drive was found not to carry out the quick stop.
    since: Seconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuickStopStage {
    /// The drive has the request.
    Asked,
    SetPoints,
    Halt,
    /// At standstill.
    Rest,
    CutOff,
}

impl QuickStop {
    /// Set-points are not followed any more.
    pub(super) const fn forget_way_back(&mut self) {
        self.way_back = None;
    }
}

impl Supervisor {
    /// The same for an axis with these means.
    #[must_use]
    pub fn with_means(self, means: StoppingMeans) -> Self {
        Self { means, ..self }
    }

    /// Means to stop it without its drive's quick stop.
    #[must_use]
    pub const fn means(&self) -> StoppingMeans {
        self.means
    }

    /// Step that stopped the axis because its drive did not carry out the quick stop, until a
    /// reset.
    #[must_use]
    pub const fn quick_stop_step(&self) -> Option<QuickStopStep> {
        self.quick_stop_step
    }

    /// Longest time the steps take from here; 0 while the drive is trusted to stop by itself.
    #[must_use]
    pub fn quick_stop_time(&self) -> Seconds {
        match self.quick_stop {
            Some(QuickStop {
                course: QuickStopStage::SetPoints | QuickStopStage::Halt,
                before,
                since,
                ..
            }) => Seconds((self.longest(before).0 - since.0).max(0.0)),
            _ => Seconds::ZERO,
        }
    }

    /// True while the steps have the axis.
    pub(super) fn is_stopped_by_steps(&self) -> bool {
        self.quick_stop.is_some_and(|it| it.course != QuickStopStage::Asked)
    }

    /// True where set-points stop the axis.
    #[must_use]
    pub fn leads_to_rest(&self) -> bool {
        self.mode() != CyclicMode::Torque && !self.drive_makes_the_way()
    }

    /// Request to the drive in this cycle, if a quick stop is requested.
    pub(super) fn step_quick_stop(&mut self, elapsed: Seconds, seen: &Seen) -> Option<Intervention> {
        if seen.feedback.fresh {
            self.believed = Some(seen.feedback.velocity);
        }
        let requested = match self.hold {
            Hold::Stopped { braking: Braking::Drive(Intervention::QuickStop), .. } => true,
            Hold::Stopped {
                braking: Braking::Drive(Intervention::Disable | Intervention::CutOff), ..
            } => false,
            _ => seen.quick_stop || self.halting.is_some_and(|it| it.ignored),
        };
        if !requested {
            self.quick_stop = None;
            if self.hold == Hold::Free && self.acknowledged {
                self.quick_stop_step = None;
            }
            return None;
        }
        let begins = self.quick_stop.is_none();
        self.after_quick_stop = true;
        let before = self.believed.unwrap_or(self.settings.limits.velocity);
        let ignored_halt = self.halting.filter(|it| it.ignored);
        let mut stop = self.quick_stop.unwrap_or(QuickStop {
            course: QuickStopStage::Asked,
            way_back: None,
            before,
            reference: before.abs(),
            stuck: Seconds::ZERO,
            doubted: Seconds::ZERO,
            astray: self.astray_before(),
            from: ignored_halt.map_or(before.0.abs(), |it| it.before),
            highest: before.0.abs(),
            leaps: 0,
            since: Seconds::ZERO,
        });
        if begins && !self.means.quick_stops {
            // The drive still follows its set-points: the set-points of the steps begin there.
            let halts = !self.leads_to_rest() && self.means.halts;
            self.enter(
                &mut stop,
                if halts { QuickStopStage::Halt } else { QuickStopStage::SetPoints },
                before.abs(),
            );
            self.end_way(&seen.feedback);
        }
        self.advance_quick_stop(&mut stop, elapsed, seen);
        self.quick_stop = Some(stop);
        // Set-points and a halt need an enabled drive: no stop enables a drive that shows that it
        // is off.
        let is_off = seen.has_power.is_some() && !seen.enabled;
        Some(match stop.course {
            QuickStopStage::Asked => Intervention::QuickStop,
            QuickStopStage::SetPoints | QuickStopStage::Halt if is_off => Intervention::QuickStop,
            QuickStopStage::SetPoints => Intervention::Follow,
            QuickStopStage::Halt => Intervention::Halt,
            QuickStopStage::Rest if !self.means.keeps_torque => Intervention::Disable,
            QuickStopStage::Rest if is_off => Intervention::QuickStop,
            QuickStopStage::Rest if self.leads_to_rest() => Intervention::Follow,
            QuickStopStage::Rest if self.means.halts => Intervention::Halt,
            QuickStopStage::Rest if self.means.quick_stops => Intervention::QuickStop,
            QuickStopStage::Rest => Intervention::Follow,
            QuickStopStage::CutOff => Intervention::CutOff,
        })
    }

    /// Time for which it had run away already when its positions became implausible.
    fn astray_before(&self) -> Seconds {
        let is_implausible = self.stopped() == Some(StopReason::Implausible);
        if is_implausible { self.runaway.time() } else { Seconds::ZERO }
    }

    /// True once the axis has run away for [`ANSWER`], though its drive has the request.
    fn runs_on(&self, stop: &mut QuickStop, elapsed: Seconds, seen: &Seen) -> bool {
        // After a late cycle one reply does not count for all the time.
        let counted = Seconds(elapsed.0.min(self.period.0));
        let speed = seen.feedback.velocity.0.abs();
        if seen.feedback.fresh && speed.is_finite() {
            if seen.missed > BLIND_CYCLES {
                // Its drive brakes from here on: nothing is known of the outage.
                stop.from = stop.from.max(speed);
            }
            // The load of an axis without a brake may pull it: without torque it would fall.
            let is_faster =
                seen.brakes && !self.means.keeps_torque && speed > stop.from + self.runaway_margin();
            if !is_faster || speed < stop.highest - self.least_slowing() {
                (stop.highest, stop.astray) = (speed, Seconds::ZERO);
            } else {
                stop.highest = stop.highest.max(speed);
                stop.astray += counted;
            }
            stop.leaps = 0;
        } else if seen.leaps > 0 && (seen.brakes || seen.enabled) {
            if seen.leaps <= stop.leaps {
                // A jump in the other direction is no motion.
                stop.astray = Seconds::ZERO;
            } else if seen.leaps > BLIND_CYCLES {
                stop.astray += counted;
            }
            stop.leaps = seen.leaps;
        }
        stop.astray >= ANSWER && stop.course != QuickStopStage::CutOff
    }

    fn advance_quick_stop(&mut self, stop: &mut QuickStop, elapsed: Seconds, seen: &Seen) {
        if self.runs_on(stop, elapsed, seen) {
            return self.cut_off(stop);
        }
        if !seen.enabled && !seen.feedback.fresh && seen.missed <= BLIND_CYCLES {
            // A lost reply is no evidence.
            stop.since += elapsed;
            return;
        }
        if !seen.enabled {
            // It carries it out, has no torque any more, or nothing is known of it.
            (stop.stuck, stop.doubted) = (Seconds::ZERO, Seconds::ZERO);
            if seen.missed > BLIND_CYCLES
                && matches!(stop.course, QuickStopStage::SetPoints | QuickStopStage::Halt)
            {
                self.cut_off(stop);
            }
            return;
        }
        let limit = self.settings.limits.velocity;
        let speed = seen.feedback.velocity.abs();
        let trusted = seen.feedback.fresh && seen.feedback.velocity.is_finite();
        if !trusted {
            stop.doubted += elapsed;
            if stop.doubted >= ANSWER {
                self.cut_off(stop);
            }
            return;
        }
        stop.doubted = Seconds::ZERO;
        if seen.missed > BLIND_CYCLES && self.leads_to_rest() && stop.course == QuickStopStage::Asked {
            // Set-points were constant, or fell, while the axis moved: they begin where it is.
            let planned = self.plan_way_back(&seen.feedback, stop.before).is_ok();
            stop.way_back = planned.then_some(true);
        }
        if speed < stop.reference - limit * STANDS {
            (stop.reference, stop.stuck) = (speed, Seconds::ZERO);
        } else {
            stop.stuck += elapsed;
        }
        let stuck = stop.stuck >= ANSWER;
        let stands = stuck && speed <= limit * STANDS;
        let faster = speed > stop.before.abs() + limit * FASTER;
        match stop.course {
            QuickStopStage::Asked if stands => self.rest(stop, self.step_by_default()),
            QuickStopStage::Asked if stuck => self.begin_steps(stop, &seen.feedback),
            QuickStopStage::Asked | QuickStopStage::Rest | QuickStopStage::CutOff => {}
            QuickStopStage::SetPoints | QuickStopStage::Halt => {
                stop.since += elapsed;
                if stands {
                    let halted = stop.course == QuickStopStage::Halt;
                    self.rest(stop, if halted { QuickStopStep::Halt } else { self.step_by_default() });
                } else if faster || stop.since >= self.longest(stop.before) {
                    self.cut_off(stop);
                } else if stuck && stop.course == QuickStopStage::SetPoints && self.means.halts {
                    self.enter(stop, QuickStopStage::Halt, speed);
                }
            }
        }
    }

    /// Step that stopped an axis while its drive had only the quick-stop request.
    fn step_by_default(&self) -> QuickStopStep {
        match (self.leads_to_rest(), self.means.halts) {
            (true, _) => QuickStopStep::SetPoints,
            (false, true) => QuickStopStep::Halt,
            (false, false) => QuickStopStep::NoTorque,
        }
    }

    /// The drive does not carry it out, and moves.
    fn begin_steps(&mut self, stop: &mut QuickStop, feedback: &AxisFeedback) {
        let speed = feedback.velocity.abs();
        if self.leads_to_rest() {
            let planned = self.plan_way_back(feedback, stop.before).is_ok();
            stop.way_back = planned.then_some(true);
            self.enter(stop, QuickStopStage::SetPoints, speed);
        } else if self.means.halts {
            self.enter(stop, QuickStopStage::Halt, speed);
        } else {
            // Torque or velocity 0, or a destination in reach: nothing else is known to brake it.
            self.enter(stop, QuickStopStage::SetPoints, speed);
            self.end_way(feedback);
        }
    }

    /// The way of a drive to its destination ends where the axis can stop.
    fn end_way(&mut self, feedback: &AxisFeedback) {
        let (here, velocity) = (feedback.position, feedback.velocity.0);
        let place = here.0 + velocity * velocity.abs() / (2.0 * self.settings.limits.deceleration.0);
        if self.drive_makes_the_way() && self.mode() == CyclicMode::Position && place.is_finite() {
            self.sent.position = Radians(place);
        }
    }

    fn enter(&mut self, stop: &mut QuickStop, course: QuickStopStage, speed: RadiansPerSecond) {
        (stop.course, stop.reference, stop.stuck) = (course, speed, Seconds::ZERO);
    }

    fn rest(&mut self, stop: &mut QuickStop, step: QuickStopStep) {
        stop.course = QuickStopStage::Rest;
        stop.before = RadiansPerSecond::ZERO;
        self.report_step(step);
    }

    fn cut_off(&mut self, stop: &mut QuickStop) {
        stop.course = QuickStopStage::CutOff;
        self.report_step(QuickStopStep::CutOff);
    }

    /// The step is reported until a reset.
    fn report_step(&mut self, step: QuickStopStep) {
        self.quick_stop_step = Some(step);
        // A reset of before, which no stop has used, does not count.
        self.acknowledged &= self.hold != Hold::Free;
    }

    /// Time within which the steps stop an axis of this speed.
    fn longest(&self, before: RadiansPerSecond) -> Seconds {
        Seconds(2.0 * before.0.abs() / self.settings.limits.deceleration.0 + MARGIN.0)
    }

    /// Set-points that lead an axis to standstill during the quick-stop request.
    pub(super) fn lead_to_rest(&mut self, elapsed: Seconds, seen: &Seen) {
        if !self.leads_to_rest() || seen.feedback.phase == AxisPhase::NotEnabled {
            let here = self.sent.position;
            return self.move_on(RadiansPerSecond::ZERO, NewtonMetres::ZERO, here, elapsed);
        }
        if seen.missed > BLIND_CYCLES && !seen.feedback.fresh {
            return self.stand_or_fall();
        }
        let way_back = self.quick_stop.as_mut().and_then(|it| it.way_back.as_mut());
        let velocity = match way_back.map(|begins| mem::replace(begins, false)) {
            Some(begins) => {
                let point = self.next_on_way_back(begins);
                if self.mode() == CyclicMode::Position {
                    return self.return_to(point, begins);
                }
                point.velocity
            }
            None => self.braked(elapsed),
        };
        let velocity = match self.mode() {
            CyclicMode::Velocity => self.slowed_for_stop(velocity, seen.feedback.position, elapsed),
            CyclicMode::Position | CyclicMode::Torque => velocity,
        };
        self.move_on(velocity, NewtonMetres::ZERO, self.sent.position, elapsed);
    }

    /// True if a reset has to end the stop: the axis stays enabled only to hold its load.
    pub(super) fn holds_until_reset(&self) -> bool {
        self.means.keeps_torque && self.quick_stop.is_some() && self.quick_stop_step.is_some()
    }

    /// True if the axis is held, enabled, at standstill, or slows down to that: its load falls
    /// without the torque.
    #[must_use]
    pub fn keeps_load(&self) -> bool {
        self.means.keeps_torque && self.quick_stop.is_some_and(|it| it.course != QuickStopStage::CutOff)
    }

    /// True if the axis is held, enabled, at standstill: its load falls without the torque.
    #[must_use]
    pub fn is_held_enabled(&self) -> bool {
        self.holds_until_reset() && self.quick_stop.is_some_and(|it| it.course == QuickStopStage::Rest)
    }
}

/// Time within which an enabled drive has to slow down after the request for a quick stop.
pub const ANSWER: Seconds = Seconds(0.05);

/// Time to standstill that an axis may take beyond twice the time of its deceleration.
const MARGIN: Seconds = Seconds(0.5);

/// Share of the velocity limit by which an axis counts as faster than before.
const FASTER: f64 = 0.05;
