//! Interpolation: from set-points once a cycle to a demand for every control period.
//!
//! Control loops of the drive: from set-points to torque.

use core::time::Duration;

/// Target positions of CSP, joined by straight lines (CiA 402, interpolation time period 0x60C2).
///
/// Positions are in counts that do not wrap; targets are the 32-bit values of 0x607A, which do: a
/// target is taken to lie less than half their range away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interpolation {
    target: i32,
    start: f64,
    end: f64,
    velocity: f64,
    elapsed: Duration,
    period: Duration,
}

impl Interpolation {
    /// Interpolation at standstill at `position`.
    pub(super) fn at(position: f64) -> Self {
        Self {
            target: wrapped(position),
            start: position,
            end: position,
            velocity: 0.0,
            elapsed: Duration::ZERO,
            period: Duration::ZERO,
        }
    }

    /// Last target.
    pub(super) fn target(&self) -> i32 {
        self.target
    }

    /// Position of the last target, in counts that do not wrap.
    pub(super) fn end(&self) -> f64 {
        self.end
    }

    /// Sets a new target, to be reached in `period` from the present demand.
    pub(super) fn aim(&mut self, target: i32, period: Duration) {
        let position = self.position();
        self.start = position;
        self.end = nearest(target, position);
        self.target = target;
        self.elapsed = Duration::ZERO;
        self.period = period;
        let seconds = period.as_secs_f64();
        self.velocity = if seconds > 0.0 { (self.end - self.start) / seconds } else { 0.0 };
    }

    /// Advances by `time`.
    pub(super) fn advance(&mut self, time: Duration) {
        self.elapsed = self.elapsed.saturating_add(time);
    }

    /// Demand, in counts.
    pub(super) fn position(&self) -> f64 {
        if self.elapsed >= self.period {
            return self.end;
        }
        self.start + self.velocity * self.elapsed.as_secs_f64()
    }

    /// Velocity to feed forward, in counts per second. It continues for a period after the end of
    /// the line, so that a target that comes a little late does not look like a stop.
    pub(super) fn velocity(&self) -> f64 {
        if self.elapsed < self.period.saturating_mul(2) { self.velocity } else { 0.0 }
    }
}

/// Velocity that falls to zero at a steady rate, with the position it leads to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Braking {
    /// Demand, in rad.
    pub(super) position: f64,
    /// Demand, in rad/s.
    pub(super) velocity: f64,
}

impl Braking {
    /// Slows down by `deceleration` (rad/s^2) for `time`.
    pub(super) fn advance(&mut self, deceleration: f64, time: Duration) {
        let seconds = time.as_secs_f64();
        let change = deceleration * seconds;
        self.velocity = if self.velocity.abs() <= change {
            0.0
        } else {
            self.velocity - change.copysign(self.velocity)
        };
        self.position += self.velocity * seconds;
    }
}

/// 32-bit value of a position, as in 0x6064.
pub(super) fn wrapped(position: f64) -> i32 {
    floor(position) as i64 as i32
}

/// The next whole number below. Without a processor instruction, `f64::floor` is a function of some
/// forty instructions.
pub(super) fn floor(value: f64) -> f64 {
    const WHOLE: f64 = (1_u64 << 52) as f64;
    if value.abs() < WHOLE {
        let towards_zero = value as i64 as f64;
        towards_zero - f64::from(u8::from(towards_zero > value))
    } else {
        value
    }
}

/// Position of value `target` that is nearest to `position`.
pub(super) fn nearest(target: i32, position: f64) -> f64 {
    let distance = target.wrapping_sub(wrapped(position));
    floor(position) + f64::from(distance)
}

/// Demand of the loops, in rad, rad/s and N m.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demand {
    /// `None` where only the velocity counts.
    pub(super) position: Option<f64>,
    pub(super) velocity: f64,
    /// Feed-forward torque, added to the loops' torque.
    pub(super) torque: f64,
}

/// A position loop (P) over a velocity loop (PI), scaled by the inertia so that one tuning fits all
/// plants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cascade {
    integral: f64,
}

/// Torque, and `true` if the limit reduced it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct LimitedTorque {
    pub(super) torque: f64,
    pub(super) limited: bool,
}

/// Gain of the position loop, 1/s.
const POSITION_GAIN: f64 = 150.0;

/// Gain of the velocity loop over the inertia, 1/s: a bandwidth of about 130 Hz.
const VELOCITY_GAIN: f64 = 800.0;

/// Inverse of the velocity loop's reset time, 1/s.
const RESET_RATE: f64 = 60.0;

impl Cascade {
    /// Clears the integral, as when the power stage is switched on.
    pub(super) fn reset(&mut self) {
        self.integral = 0.0;
    }

    /// Torque for this control period.
    pub(super) fn step(
        &mut self,
        demand: Demand,
        position: f64,
        velocity: f64,
        inertia: f64,
        limit: f64,
        time: Duration,
    ) -> LimitedTorque {
        let correction = demand.position.map_or(0.0, |wanted| POSITION_GAIN * (wanted - position));
        let error = demand.velocity + correction - velocity;
        let proportional = inertia * VELOCITY_GAIN * error;
        let wanted = proportional + self.integral + demand.torque;
        let torque = limited(wanted, limit);
        // The integral is held at the limit, or it would have to unwind afterwards.
        if !torque.limited {
            self.integral += inertia * VELOCITY_GAIN * RESET_RATE * error * time.as_secs_f64();
        }
        torque
    }
}

/// `wanted`, clamped to `limit` in either direction.
pub(super) fn limited(wanted: f64, limit: f64) -> LimitedTorque {
    let torque = wanted.clamp(-limit, limit);
    LimitedTorque { torque, limited: torque != wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_millis(1);

    #[test]
    fn the_whole_number_below_is_that_of_the_standard_library() {
        let near = [-3.5, -1.0, -1e-9, 0.0, 0.25, 1.0, 4_503_599_627_370_495.5, -4_503_599_627_370_495.5];
        for value in near.into_iter().chain([1e17, -1e300, f64::INFINITY]) {
            assert_eq!(floor(value), value.floor(), "{value}");
        }
        assert!(floor(f64::NAN).is_nan());
    }

    #[test]
    fn a_line_leads_to_the_target_and_ends_there() {
        let mut line = Interpolation::at(100.0);
        line.aim(108, PERIOD);
        assert_eq!(line.velocity(), 8000.0);
        line.advance(PERIOD / 4);
        assert!((line.position() - 102.0).abs() < 1e-9);
        line.advance(PERIOD);
        assert_eq!((line.position(), line.velocity()), (108.0, 8000.0));
        line.advance(PERIOD);
        assert_eq!((line.position(), line.velocity()), (108.0, 0.0));
    }

    #[test]
    fn targets_wrap_around() {
        let position = f64::from(i32::MAX) - 1.0;
        let mut line = Interpolation::at(position);
        line.aim(i32::MIN + 2, PERIOD);
        line.advance(PERIOD);
        assert_eq!(line.position(), position + 4.0);
        assert_eq!(wrapped(line.position()), i32::MIN + 2);
        assert_eq!(wrapped(-0.5), -1);
    }

    #[test]
    fn a_target_without_a_period_is_a_step() {
        let mut line = Interpolation::at(0.0);
        line.aim(-50, Duration::ZERO);
        assert_eq!((line.position(), line.velocity()), (-50.0, 0.0));
    }

    #[test]
    fn braking_ends_at_standstill() {
        let mut braking = Braking { position: 0.0, velocity: -10.0 };
        for _ in 0..1000 {
            braking.advance(100.0, Duration::from_micros(125));
        }
        assert_eq!(braking.velocity, 0.0);
        assert!((braking.position + 0.5).abs() < 1e-2, "v^2 / 2a, {}", braking.position);
    }
}
