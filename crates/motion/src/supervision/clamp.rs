//! Set-points of every source, clamped to the written limits of acceleration and jerk.
//!
//! A set-point within the limits passes unchanged. Any other one is a target: the sent set-point
//! approaches it within the limits, stays within the position limits, and reaches it once the
//! target is within the limits again.

use super::slope::{Differences, Slope};
use super::{ANSWER_CYCLES, CyclicMode, ROUNDING, StopReason, Supervisor};
use crate::axis::{AxisFeedback, AxisSetpoint};
use crate::units::{NewtonMetres, Radians, RadiansPerSecond, Seconds};

/// Set-points of one axis: the sequence of the sent ones, and the sequence of its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clamp {
    /// `None` where neither acceleration nor jerk is written.
    pub(super) slope: Option<Slope>,
    sent: Differences,
    asked: Differences,
    lag: Lag,
    /// Time for which the source was beyond its limits, less the time within, since its set-points
    /// passed last.
    clamped: Seconds,
}

/// Reason that the sent set-points differ from their source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lag {
    /// They are.
    No,
    /// The source went beyond acceleration or jerk.
    Slope,
    /// They could not stop before a position limit.
    Wall,
    /// They were too fast, or a release was skipped.
    Speed,
}

/// Candidate for the next set-point.
#[derive(Clone, Copy, Debug)]
struct Next {
    acceleration: f64,
    /// Lowest and highest acceleration that may follow.
    range: (f64, f64),
}

impl Clamp {
    pub(super) fn new(slope: Option<Slope>, period: Seconds) -> Self {
        let rest = Differences::at_rest(period.0);
        Self { slope, sent: rest, asked: rest, lag: Lag::No, clamped: Seconds::ZERO }
    }

    /// Set-points begin at this velocity.
    pub(super) fn begin(&mut self, velocity: RadiansPerSecond, period: Seconds) {
        let course = Differences::moving(velocity.0, period.0);
        *self = Self { sent: course, asked: course, ..Self::new(self.slope, period) };
    }

    /// True if a source has been clamped for so long that its axis is stopped.
    pub(super) fn is_over(&self) -> bool {
        self.clamped >= CLAMPED_TIME
    }

    fn note(&mut self, lag: Lag, breaks: bool, binds: bool, elapsed: Seconds) -> Option<StopReason> {
        self.lag = lag;
        match lag {
            Lag::No | Lag::Speed | Lag::Wall => self.clamped = Seconds::ZERO,
            // Not while it is held at a position limit, nor on the way to a target that is within
            // the limits again.
            Lag::Slope if breaks && !binds => self.clamped += elapsed,
            // Corners of a path are apart: between them its source is within the limits.
            Lag::Slope => self.clamped = Seconds((self.clamped.0 - elapsed.0).max(0.0)),
        }
        match lag {
            _ if binds => Some(StopReason::PositionLimit),
            Lag::Slope => Some(StopReason::AccelerationLimit),
            Lag::No | Lag::Wall | Lag::Speed => None,
        }
    }

    /// Acceleration of the source, where it is within its limits.
    fn own_acceleration(&self, slope: Slope, breaks: bool) -> f64 {
        let own = self.asked.acceleration;
        if breaks || own.abs() > slope.acceleration { 0.0 } else { own }
    }

    /// True if set-points that have met their source at this velocity and acceleration can stay
    /// with it: they have not left it, or the next two set-points stay if the source continues as
    /// now.
    fn stays(
        &self,
        slope: Slope,
        velocity: f64,
        acceleration: f64,
        breaks: bool,
        h: f64,
        rounding: f64,
    ) -> bool {
        if self.lag == Lag::No {
            return true;
        }
        let own = self.own_acceleration(slope, breaks);
        let next = (self.asked.velocity + own * h - velocity) / h;
        (next - slope.nearest(next, acceleration, 1.0)).abs() <= rounding
            && (own - slope.nearest(own, next, 1.0)).abs() <= rounding
    }

    /// The reason of a lag, now that a set-point does not pass: the reason it began with, unless
    /// its source `breaks` its limits.
    fn lag(&self, breaks: bool, binds: bool, is_fast: bool) -> Lag {
        match self.lag {
            _ if breaks => Lag::Slope,
            Lag::No if binds => Lag::Wall,
            Lag::No if is_fast => Lag::Speed,
            Lag::No => Lag::Slope,
            lag => lag,
        }
    }
}

impl Supervisor {
    /// Position within the limits of acceleration and jerk.
    pub(super) fn clamp_position(
        &mut self,
        slope: Slope,
        elapsed: Seconds,
        asked: AxisSetpoint,
    ) -> Option<StopReason> {
        let (limits, h) = (self.limits_now(), elapsed.0);
        let (course, here, target) = (self.clamp.sent, self.sent.position.0, asked.position.0);
        let (span, cycles) = course.spans(h, true, self.period.0);
        let rounding = (NEAR + here.abs() * ROUNDS) / (h * span);
        // An axis that is ahead of its set-point has less distance left: its set-points end there.
        let goal = self.goal(target);
        let is_held = goal != target;
        let away = goal - here;
        let velocity = away / h;
        let acceleration = (velocity - course.velocity) / span;
        let breaks = {
            let own = self.clamp.asked;
            let velocity = (target - self.asked.map_or(here, |asked| asked.0)) / h;
            let acceleration = (velocity - own.velocity) / span;
            self.clamp.asked.go_on(velocity, acceleration, h);
            (acceleration - slope.nearest(acceleration, own.acceleration, cycles)).abs() > rounding
        };
        let own = self.clamp.asked;
        let highest = limits.velocity.0 + ROUNDING.0 / h;
        let (lowest_place, highest_place) =
            self.bounds().map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| (low.0, high.0));
        let (lowest_room, highest_room) =
            self.room().map_or((f64::NEG_INFINITY, f64::INFINITY), |(low, high)| (low.0, high.0));
        // Next to a skipped release the acceleration is from an earlier moment: it has fallen
        // since.
        let since = (span - self.period.0) / 2.0;
        let is_slow = |a: f64, span: f64| {
            let velocity = course.velocity + a * span;
            slope.peak(velocity, a) <= highest && slope.peak(-velocity, -a) <= highest
        };
        let slow_up = |a: f64| slope.peak(course.velocity + a * span, a) <= highest;
        let slow_down = |a: f64| slope.peak(-course.velocity - a * span, -a) <= highest;
        let stops_up = |a: f64, rounding: f64| {
            let v = course.velocity + a * span;
            here + v * h + slope.way_to_turn(v, a) <= highest_room + rounding
        };
        let stops_down = |a: f64, rounding: f64| {
            let v = course.velocity + a * span;
            here + v * h - slope.way_to_turn(-v, -a) >= lowest_room - rounding
        };
        let nearest = slope.nearest(acceleration, course.acceleration, cycles);
        let within = (acceleration - nearest).abs() <= rounding
            && velocity.abs() <= highest
            && away.abs() <= limits.step.0 + ROUNDING.0
            && is_slow(nearest, span - since)
            && self.clamp.stays(slope, velocity, nearest, breaks, h, rounding);
        if within && stops_up(nearest, ROUNDING.0) && stops_down(nearest, ROUNDING.0) {
            self.sent = AxisSetpoint {
                position: Radians(goal),
                velocity: RadiansPerSecond(velocity),
                torque: NewtonMetres::ZERO,
            };
            self.clamp.sent.go_on(velocity, nearest, h);
            return self.clamp.note(Lag::No, false, false, elapsed);
        }
        let is_fast = own.velocity.abs() > highest || !is_slow(nearest, span - since);
        // As hard towards the target as it can still be met.
        let with = if is_held { 0.0 } else { own.velocity.clamp(-limits.velocity.0, limits.velocity.0) };
        let of_target = if is_held { 0.0 } else { self.clamp.own_acceleration(slope, breaks) };
        let mut next = Next::towards(slope, course, cycles, |a| {
            let v = course.velocity + a * span;
            v * h + slope.way_to_meet(v - with, a - of_target, of_target) <= away
        });
        let binds = !stops_up(next.acceleration, 0.0) || !stops_down(next.acceleration, 0.0);
        next.limit(
            |a| slow_up(a) && stops_up(a, ROUNDING.0 / 2.0),
            |a| slow_down(a) && stops_down(a, ROUNDING.0 / 2.0),
        );
        let lag = self.clamp.lag(breaks, binds, is_fast);
        let mut velocity = RadiansPerSecond(course.velocity + next.acceleration * span);
        if !(stops_up(next.acceleration, 2.0 * ROUNDING.0)
            && stops_down(next.acceleration, 2.0 * ROUNDING.0))
        {
            // It began too fast to stop within acceleration and jerk.
            velocity = self.slowed(velocity, self.sent.position, elapsed, limits.deceleration);
        }
        let place = (here + velocity.0 * h).clamp(lowest_place, highest_place);
        self.step_to(place, elapsed);
        let velocity = self.sent.velocity.0;
        // Where the largest step or the deceleration of a stop limits it, jerk would continue the
        // braking.
        let planned = course.velocity + next.acceleration * span;
        let is_held_back = (velocity - planned).abs() * h > 4.0 * ROUNDING.0;
        let acceleration = if is_held_back { 0.0 } else { (velocity - course.velocity) / span };
        self.clamp.sent.go_on(velocity, acceleration, h);
        self.clamp.note(lag, breaks, binds, elapsed)
    }

    /// Velocity within the limits of acceleration and jerk.
    pub(super) fn clamp_velocity(
        &mut self,
        slope: Slope,
        elapsed: Seconds,
        asked: AxisSetpoint,
        feedback: &AxisFeedback,
    ) -> Option<StopReason> {
        let (limits, h) = (self.limits_now(), elapsed.0);
        let course = self.clamp.sent;
        let (span, cycles) = course.spans(h, false, self.period.0);
        let rounding = limits.velocity.0 * ROUNDED_VELOCITY / span;
        let target = asked.velocity.0.clamp(-limits.velocity.0, limits.velocity.0);
        let acceleration = (target - course.velocity) / span;
        let breaks = {
            let own = self.clamp.asked;
            let acceleration = (target - own.velocity) / span;
            self.clamp.asked.go_on(target, acceleration, h);
            (acceleration - slope.nearest(acceleration, own.acceleration, cycles)).abs() > rounding
        };
        let nearest = slope.nearest(acceleration, course.acceleration, cycles);
        let highest = limits.velocity.0 + limits.velocity.0 * ROUNDED_VELOCITY;
        let slow_up = |a: f64| slope.peak(course.velocity + a * span, a) <= highest;
        let slow_down = |a: f64| slope.peak(-course.velocity - a * span, -a) <= highest;
        let reaction = h + self.period.0 * ANSWER_CYCLES * SETTLES;
        let place = feedback.position.0;
        let (up, down) = self.bounds().map_or((f64::INFINITY, f64::INFINITY), |(low, high)| {
            ((high.0 - place).max(0.0), (place - low.0).max(0.0))
        });
        // An axis counts if it is faster than its set-points by more than a late response explains.
        let late = slope.acceleration * self.period.0 * ANSWER_CYCLES + limits.velocity.0 * AHEAD;
        let ahead = |velocity: f64, actual: f64| if actual > velocity + late { actual } else { velocity };
        let stops = |velocity: f64, actual: f64, a: f64, way: f64| {
            let velocity = ahead(velocity, actual);
            slope.peak(velocity, a).max(0.0) * reaction + slope.way_to_rest(velocity, a) <= way
        };
        let stops_up = |a: f64| stops(course.velocity + a * span, feedback.velocity.0, a, up);
        let stops_down = |a: f64| stops(-course.velocity - a * span, -feedback.velocity.0, -a, down);
        let within = (acceleration - nearest).abs() <= rounding && slow_up(nearest) && slow_down(nearest);
        if within && stops_up(nearest) && stops_down(nearest) {
            self.move_on(RadiansPerSecond(target), NewtonMetres::ZERO, feedback.position, elapsed);
            self.clamp.sent.go_on(target, nearest, h);
            return self.clamp.note(Lag::No, false, false, elapsed);
        }
        let of_target = self.clamp.own_acceleration(slope, breaks);
        let mut next = Next::towards(slope, course, cycles, |a| {
            course.velocity + a * span + slope.turn(a - of_target) <= target
        });
        let binds = !stops_up(next.acceleration) || !stops_down(next.acceleration);
        next.limit(|a| slow_up(a) && stops_up(a), |a| slow_down(a) && stops_down(a));
        let velocity = RadiansPerSecond(course.velocity + next.acceleration * span);
        let velocity = self.slowed_for_stop(velocity, feedback.position, elapsed);
        let velocity = RadiansPerSecond(velocity.0.clamp(-highest, highest));
        self.move_on(velocity, NewtonMetres::ZERO, feedback.position, elapsed);
        self.clamp.sent.go_on(velocity.0, (velocity.0 - course.velocity) / span, h);
        let lag = self.clamp.lag(breaks, binds, false);
        self.clamp.note(lag, breaks, binds, elapsed)
    }

    /// Sends a position, no farther than a step.
    fn step_to(&mut self, place: f64, elapsed: Seconds) {
        let step = self.settings.limits.step.0;
        let here = self.sent.position;
        let moved = (place - here.0).clamp(-step, step);
        let position = if moved == place - here.0 { Radians(place) } else { here + Radians(moved) };
        self.sent =
            AxisSetpoint { position, velocity: Radians(moved) / elapsed, torque: NewtonMetres::ZERO };
    }

    /// Set-points begin here, where another mode or supervision had the axis.
    pub(super) fn begin_course(&mut self, velocity: RadiansPerSecond) {
        self.clamp.begin(velocity, self.period);
    }

    /// Velocity with which set-points continue after another mode.
    pub(super) fn velocity_of(&self, mode: CyclicMode, feedback: &AxisFeedback) -> RadiansPerSecond {
        match mode {
            CyclicMode::Torque => feedback.velocity,
            CyclicMode::Position | CyclicMode::Velocity => self.sent.velocity,
        }
    }
}

impl Next {
    /// The highest acceleration that `fits`.
    fn towards(slope: Slope, course: Differences, cycles: f64, fits: impl Fn(f64) -> bool) -> Self {
        let to = |wanted| slope.nearest(wanted, course.acceleration, cycles);
        let range = (to(f64::NEG_INFINITY), to(f64::INFINITY));
        Self { acceleration: Slope::highest(range.0, range.1, fits), range }
    }

    /// As near to what is wanted as both sides allow.
    fn limit(&mut self, fits_up: impl Fn(f64) -> bool, fits_down: impl Fn(f64) -> bool) {
        let (lowest, highest) = self.range;
        self.acceleration = Slope::highest(lowest, self.acceleration, fits_up);
        self.acceleration = -Slope::highest(-highest, -self.acceleration, |a| fits_down(-a));
    }
}

/// Time beyond the limits without a set-point that passes, after which an axis is stopped.
const CLAMPED_TIME: Seconds = Seconds(0.1);

/// Set-points nearer than this to the limits are within them: far less than an encoder count, and
/// as near as the ends of planned motions are.
const NEAR: f64 = 2e-8;

/// Roundings in the differences of four positions, as a share of the position.
const ROUNDS: f64 = 8.0 * f64::EPSILON;

/// The same for a velocity, as a share of its limit.
const ROUNDED_VELOCITY: f64 = 1e-7;

/// Share of the velocity limit by which an axis may be faster than its set-points.
const AHEAD: f64 = 0.05;

/// Answer times in which an axis approaches a position limit: from e on it does not overshoot, for
/// its answers are that late.
const SETTLES: f64 = 2.72;
