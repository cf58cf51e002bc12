//! Acceleration and jerk of set-points: their limits, and the distance that they need to stop.
//!
//! Set-points are a sequence of positions, one a cycle. Velocity, acceleration and jerk are its
//! first, second and third differences over the time between them. Samples of any motion within its
//! limits are within them in these differences, so such a motion passes unchanged.

use super::{Limits, ROUNDING};
use crate::units::{Radians, RadiansPerSecond, RadiansPerSecondSquared, Seconds};

/// Limits of acceleration and jerk as set-points are held to them. Both are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slope {
    pub(super) acceleration: f64,
    /// Largest change of the acceleration in one cycle.
    pub(super) change: f64,
    /// Cycle time, s.
    period: f64,
}

/// Velocity and acceleration of a sequence of set-points, and the times between its last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Differences {
    pub(super) velocity: f64,
    pub(super) acceleration: f64,
    /// Time between the last two, s.
    last: f64,
    /// Time between the two before, s.
    before: f64,
}

impl Slope {
    /// The limits that are written; `None` where neither is.
    pub(super) fn of(limits: &Limits, period: f64) -> Option<Self> {
        let written = limits.written;
        if !(written.acceleration || written.jerk) {
            return None;
        }
        // From one speed limit to the other in a cycle: no motion needs more.
        let reversal = 2.0 * TOLERANCE * limits.velocity.0 / period;
        let acceleration = if written.acceleration { limits.acceleration.0 * TOLERANCE } else { reversal };
        let acceleration = acceleration.min(reversal);
        let jerk = if written.jerk { limits.jerk.0 * TOLERANCE } else { f64::INFINITY };
        let change = (jerk * period).min(2.0 * acceleration);
        Some(Self { acceleration, change, period })
    }

    /// Nearest acceleration to `wanted` that may follow `now`. An acceleration that is too high
    /// falls as fast as jerk lets it.
    pub(super) fn nearest(&self, wanted: f64, now: f64, cycles: f64) -> f64 {
        let change = self.change * cycles;
        wanted.clamp(-self.acceleration, self.acceleration).clamp(now - change, now + change)
    }

    /// Distance from here to the farthest place of set-points that brake as hard as they may; 0 if
    /// they never move on.
    pub(super) fn way_to_turn(&self, velocity: f64, acceleration: f64) -> f64 {
        let Self { acceleration: highest, change, period } = *self;
        // Velocity after k cycles: v + T (k a - q k (k + 1) / 2), and its last k above 0.
        let half = acceleration - change / 2.0;
        let root = half * half + 2.0 * change * velocity / period;
        if root < 0.0 {
            return 0.0;
        }
        let last = ((half + root.sqrt()) / change).floor().max(0.0);
        let falling = ((acceleration + highest) / change).floor().max(0.0);
        let k = last.min(falling);
        let way = period * k * velocity
            + period
                * period
                * (acceleration * k * (k + 1.0) / 2.0 - change * k * (k + 1.0) * (k + 2.0) / 6.0);
        if last < falling {
            return way.max(0.0);
        }
        let velocity = velocity + period * (k * acceleration - change * k * (k + 1.0) / 2.0);
        let m = (velocity / (highest * period)).floor().max(0.0);
        (way + period * (m * velocity - highest * period * m * (m + 1.0) / 2.0)).max(0.0)
    }

    /// Highest velocity of set-points with an acceleration that falls as fast as it may.
    pub(super) fn peak(&self, velocity: f64, acceleration: f64) -> f64 {
        let n = (acceleration / self.change).floor().max(0.0);
        velocity + self.period * (n * acceleration - self.change * n * (n + 1.0) / 2.0)
    }

    /// Distance in which an axis stops with its acceleration back at 0: v^2 / 2a + v a / 2j, if it
    /// does not accelerate. If it turns back however it brakes, the distance to the turn.
    pub(super) fn way_to_rest(&self, velocity: f64, acceleration: f64) -> f64 {
        let jerk = self.change / self.period;
        let (v, a) = (velocity, acceleration);
        if v + a * a.abs() / (2.0 * jerk) > 0.0 {
            return to_rest(v, a, self.acceleration, jerk).max(0.0);
        }
        let root = a * a - 2.0 * jerk * v;
        if v <= 0.0 || root < 0.0 {
            return 0.0;
        }
        let t = (-a - root.sqrt()) / jerk;
        (v * t + a * t * t / 2.0 + jerk * t * t * t / 6.0).max(0.0)
    }

    /// Displacement in which set-points reach the velocity and the acceleration of a target.
    /// `velocity` and `acceleration` are relative to it.
    pub(super) fn way_to_meet(&self, velocity: f64, acceleration: f64, of_target: f64) -> f64 {
        let highest = (CALM * self.acceleration - of_target.abs()).max(self.acceleration * (1.0 - CALM));
        to_rest(velocity, acceleration, highest, CALM * self.change / self.period)
    }

    /// Change of a velocity until its acceleration is back at 0.
    pub(super) fn turn(&self, acceleration: f64) -> f64 {
        acceleration * acceleration.abs() / (2.0 * CALM * self.change / self.period)
    }

    /// `velocity` of set-points, slowed down so that they stop between `bounds` with this
    /// deceleration, which may begin at once.
    pub(super) fn slowed(
        &self,
        velocity: RadiansPerSecond,
        position: Radians,
        bounds: Option<(Radians, Radians)>,
        deceleration: RadiansPerSecondSquared,
        elapsed: Seconds,
    ) -> RadiansPerSecond {
        let Some((lowest, highest)) = bounds else { return velocity };
        let acceleration = deceleration.0 * TOLERANCE;
        let stop = Self { acceleration, change: 2.0 * acceleration, period: self.period };
        let within = |way: f64| {
            move |velocity: f64| {
                velocity * elapsed.0 + stop.way_to_turn(velocity, -acceleration)
                    <= way.max(0.0) + ROUNDING.0
            }
        };
        let velocity = Self::highest(0.0_f64.min(velocity.0), velocity.0, within((highest - position).0));
        RadiansPerSecond(-Self::highest(0.0_f64.min(-velocity), -velocity, within((position - lowest).0)))
    }

    /// Acceleration from `lowest` to `wanted`, the highest that `fits`; `lowest` where none does.
    pub(super) fn highest(lowest: f64, wanted: f64, fits: impl Fn(f64) -> bool) -> f64 {
        if fits(wanted) {
            return wanted;
        }
        let (mut low, mut high) = (lowest, wanted);
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(low, high);
            if fits(middle) { low = middle } else { high = middle }
        }
        low
    }
}

impl Differences {
    /// At standstill.
    pub(super) fn at_rest(period: f64) -> Self {
        Self::moving(0.0, period)
    }

    /// At a velocity, without acceleration.
    pub(super) fn moving(velocity: f64, period: f64) -> Self {
        Self { velocity, acceleration: 0.0, last: period, before: period }
    }

    /// Time over which the next velocity differs from this one, where `elapsed` passes until then,
    /// and the share of a cycle's change of acceleration in it.
    pub(super) fn spans(&self, elapsed: f64, of_positions: bool, period: f64) -> (f64, f64) {
        match of_positions {
            true => {
                (f64::midpoint(self.last, elapsed), (self.before + self.last + elapsed) / (3.0 * period))
            }
            false => (elapsed, f64::midpoint(self.last, elapsed) / period),
        }
    }

    /// `elapsed` later.
    pub(super) fn go_on(&mut self, velocity: f64, acceleration: f64, elapsed: f64) {
        *self = Self { velocity, acceleration, last: elapsed, before: self.last };
    }
}

/// A limit is kept within 1 %: controllers plan to their limits exactly, and sums of doubles round.
pub(super) const TOLERANCE: f64 = 1.01;

/// Displacement of the fastest stop within an acceleration and a jerk.
fn to_rest(velocity: f64, acceleration: f64, highest: f64, jerk: f64) -> f64 {
    let (v, a) = (velocity, acceleration);
    if v + a * a.abs() / (2.0 * jerk) < 0.0 {
        return -to_rest(-v, -a, highest, jerk);
    }
    // Down to -b, on at -b, and up to 0.
    let deepest = (jerk * v + a * a / 2.0).max(0.0).sqrt();
    let b = deepest.min(highest).max(-a);
    let t = (a + b) / jerk;
    let down = v * t + a * t * t / 2.0 - jerk * t * t * t / 6.0;
    let v = v + a * t - jerk * t * t / 2.0;
    let end = b * b / (2.0 * jerk);
    let held = if deepest > b && b > 0.0 { ((v - end) / b).max(0.0) } else { 0.0 };
    let even = v * held - b * held * held / 2.0;
    down + even + b * b * b / (6.0 * jerk * jerk)
}

/// Share of the limits by which a target is approached.
const CALM: f64 = 0.9;

/// Halvings until an acceleration is found.
const BISECTIONS: usize = 24;
